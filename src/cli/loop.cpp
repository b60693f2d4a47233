#include "cli/loop.h"

#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "base/memory.h"

namespace grapnel::cli {

struct Interrupts::Impl {
  explicit Impl(Executor executor) : signals(executor, SIGINT, SIGTERM), came(executor) {}
  boost::asio::signal_set signals;
  Signal came;
};

Interrupts::Interrupts(Executor executor) : impl_(std::make_unique<Impl>(executor)) {
  // Re-armed from its own handler; a destroyed Interrupts cancels it.
  struct Listen {
    Interrupts* owner;
    void operator()(const boost::system::error_code& error, int signal) const {
      if (error) return;
      owner->last_ = signal;
      ++owner->count_;
      owner->impl_->came.notify_all();
      owner->impl_->signals.async_wait(*this);
    }
  };
  impl_->signals.async_wait(Listen{this});
}

Interrupts::~Interrupts() = default;

Task<> Interrupts::next() {
  while (count_ == told_) co_await impl_->came.wait();
  ++told_;
}

Task<> Interrupts::reached(int count) {
  while (count_ < count) co_await impl_->came.wait();
}

Task<> give_back_after_start(Clock& clock) {
  co_await clock.sleep(seconds(10));
  give_back_memory();
}

int run_loop(const std::function<Task<int>(Executor)>& command) {
  boost::asio::io_context loop(1);
  int code = 1;
  auto main = spawn(
      loop.get_executor(),
      [](const std::function<Task<int>(Executor)>& run, int& out, Executor executor) -> Task<> {
        out = co_await run(executor);
      }(command, code, loop.get_executor()));
  // Runs until the command has ended, not until every last handler has.
  while (!main.done()) {
    if (loop.run_one() == 0) break;
  }
  return code;
}

}  // namespace grapnel::cli
