// The life of a command that waits for things: its loop, and the signals that end it.
#pragma once

#include <functional>

#include "base/async.h"

namespace grapnel::cli {

// Told of SIGINT and SIGTERM, as often as they come.
class Interrupts {
 public:
  explicit Interrupts(Executor executor);
  ~Interrupts();
  int count() const { return count_; }
  int last() const { return last_; }  // SIGINT or SIGTERM; 0: none has come
  Task<> next();              // the first that no call has told of yet, which may have come already
  Task<> reached(int count);  // until so many have come

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int count_ = 0;
  int last_ = 0;
  int told_ = 0;
};

// For commands that go on for days: what only their start needed does not stay in memory.
Task<> give_back_after_start(Clock& clock);

// Runs the command's coroutine to its end on a loop of its own; what it returns is the exit code.
int run_loop(const std::function<Task<int>(Executor)>& command);

}  // namespace grapnel::cli
