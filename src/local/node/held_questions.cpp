#include "local/node/held_questions.h"

#include <utility>

namespace grapnel::local::dns {

// Of one question, for as long as it waits.
class HeldQuestions::Place {
 public:
  Place(HeldQuestions& all, uint32_t asker, Look look) : all_(all), asker_(asker) {
    at_ = all_.held_.emplace(all_.held_.end(), all_.executor_);
    at_->look = std::move(look);
    ++all_.of_one_[asker_];
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    all_.held_.erase(at_);
    const auto count = all_.of_one_.find(asker_);
    if (--count->second == 0) all_.of_one_.erase(count);
  }
  Held& held() { return *at_; }

 private:
  HeldQuestions& all_;
  uint32_t asker_;
  std::list<Held>::iterator at_;
};

Task<> HeldQuestions::until_over(Held& held) {
  while (!held.is_over) co_await held.settled.wait();
}

void HeldQuestions::settle(Held& held) {
  held.is_over = true;
  held.settled.notify_all();
}

Task<std::optional<std::string>> HeldQuestions::wait(uint32_t asker, Look look) {
  if (auto known = look()) co_return known;
  if (held_.size() >= limits_.all) co_return std::nullopt;
  if (const auto one = of_one_.find(asker); one != of_one_.end() && one->second >= limits_.of_one) {
    co_return std::nullopt;
  }
  Place place(*this, asker, std::move(look));
  const Instant deadline = clock_.instant() + limits_.time;
  co_await with_deadline(clock_, deadline, until_over(place.held()));
  co_return std::move(place.held().answer);
}

void HeldQuestions::look_again() {
  for (Held& held : held_) {
    if (held.is_over) continue;
    held.answer = held.look();
    if (held.answer) settle(held);
  }
}

void HeldQuestions::release() {
  for (Held& held : held_) settle(held);
}

}  // namespace grapnel::local::dns
