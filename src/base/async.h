// The event loop: one thread of coroutines. Code outside base/ and http/ should use this header
// instead of Asio.
//
// A Task is lazy: it runs when it is awaited or spawned. Cancelling a Task ends it at its next
// suspension with an exception that only the loop catches, so clean-up belongs in destructors.
// Nothing here is safe to use from a second thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"

namespace grapnel {

template <class T = void>
using Task = boost::asio::awaitable<T>;
using Executor = boost::asio::any_io_executor;

// The seam between our code and time: real in programs, virtual in the simulator.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
  virtual Instant instant() const = 0;
  virtual Task<> sleep_until(Instant when) = 0;
  Task<> sleep(Duration length) { return sleep_until(instant() + length); }
};

// The clock of the machine.
Clock& system_clock();

// A handle on a spawned Task. Dropping the handle cancels the Task; detach() lets it go on alone.
class Spawned {
 public:
  Spawned() = default;
  Spawned(Spawned&&) noexcept;
  Spawned& operator=(Spawned&&) noexcept;
  ~Spawned();

  void cancel();  // asks; the Task ends at its next suspension
  void detach();
  bool done() const;
  Task<> join();  // until it has ended, however it ended

  struct State;

 private:
  friend Spawned spawn(Executor, Task<>);
  explicit Spawned(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// Whether a Task ended with this because it was cancelled: alone, or both of two together.
bool is_cancellation(const std::exception_ptr& error);

// Starts a Task on the loop. An exception that escapes it, other than cancellation, ends the
// program: it is a defect.
[[nodiscard]] Spawned spawn(Executor executor, Task<> task);
Task<Executor> this_executor();

// A condition that Tasks wait for. notify_all() wakes those waiting now; there is no memory of it,
// so check the state you wait for before each wait().
class Signal {
 public:
  explicit Signal(Executor executor);
  ~Signal();
  Task<> wait();
  void notify_all();

 private:
  struct Waiters;
  std::shared_ptr<Waiters> waiters_;
};

// A permit to be one of at most `limit` at a time, first come, first served.
class Semaphore {
  struct State;

 public:
  Semaphore(Executor executor, size_t limit);
  ~Semaphore();
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  class Permit {
   public:
    explicit Permit(std::shared_ptr<State> owner) : owner_(std::move(owner)) {}
    Permit(Permit&&) noexcept = default;
    Permit& operator=(Permit&&) = delete;
    ~Permit();

   private:
    std::shared_ptr<State> owner_;
  };
  Task<Permit> acquire();
  void shrink();  // by one: a free permit, or else the next that comes back
  void grow();

 private:
  std::shared_ptr<State> state_;
};

// Runs `task`, but no longer than until `deadline`: false when it was cut off.
Task<bool> with_deadline(Clock& clock, Instant deadline, Task<> task);

// Runs all of them at the same time and returns when each has ended. Cancelled together.
Task<> all(std::vector<Task<>> tasks);

}  // namespace grapnel
