// Questions that wait for their answer: it is not known yet, but will be in a moment. Each waits
// for a limited time, and only so many wait at once: who asks a flood of them is refused, at once.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "base/async.h"

namespace grapnel::local::dns {

class HeldQuestions {
 public:
  struct Limits {
    Duration time = seconds(4);  // less than the five seconds after which resolvers ask again
    size_t all = 2048;
    size_t of_one = 256;  // of one asker
  };
  // The answer, if it is known by now.
  using Look = std::function<std::optional<std::string>()>;

  HeldQuestions(Executor executor, Clock& clock, Limits limits)
      : executor_(std::move(executor)), clock_(clock), limits_(limits) {}
  HeldQuestions(const HeldQuestions&) = delete;
  HeldQuestions& operator=(const HeldQuestions&) = delete;

  // None: it did not become known in time, too many wait, or release() was called.
  Task<std::optional<std::string>> wait(uint32_t asker, Look look);
  // Something has changed: whoever has an answer now gets it.
  void look_again();
  // Nobody waits any longer.
  void release();

  size_t size() const { return held_.size(); }

 private:
  struct Held {
    explicit Held(Executor executor) : settled(std::move(executor)) {}
    Look look;
    std::optional<std::string> answer;
    bool is_over = false;
    Signal settled;
  };
  class Place;
  static Task<> until_over(Held& held);
  static void settle(Held& held);

  Executor executor_;
  Clock& clock_;
  Limits limits_;
  std::list<Held> held_;
  std::map<uint32_t, size_t> of_one_;
};

}  // namespace grapnel::local::dns
