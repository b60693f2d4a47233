#include "base/async.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <list>
#include <utility>

#include "base/log.h"

namespace grapnel {
namespace asio = boost::asio;
namespace {

[[noreturn]] void throw_cancelled() {
  throw boost::system::system_error(asio::error::operation_aborted);
}

// A Task has no caller to hand an exception to; going on with half of the work done would be worse.
void die_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    log_error("a task ended with an exception", {{"what", e.what()}});
  } catch (...) {
    log_error("a task ended with an exception");
  }
  std::terminate();
}

class SystemClock final : public Clock {
 public:
  Time now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  }
  Instant instant() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }
  Task<> sleep_until(Instant when) override {
    asio::steady_timer timer(co_await asio::this_coro::executor, when);
    co_await timer.async_wait(asio::use_awaitable);
  }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

Task<Executor> this_executor() {
  co_return co_await asio::this_coro::executor;
}

bool is_cancellation(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (const asio::multiple_exceptions& e) {  // of two Tasks cancelled together
    return is_cancellation(e.first_exception());
  } catch (...) {
    return false;
  }
}

struct Signal::Waiters {
  explicit Waiters(Executor executor_in) : executor(std::move(executor_in)) {}
  Executor executor;
  std::list<asio::steady_timer> timers;
};

Signal::Signal(Executor executor) : waiters_(std::make_shared<Waiters>(std::move(executor))) {}
Signal::~Signal() {
  notify_all();
}

Task<> Signal::wait() {
  const auto waiters = waiters_;  // the Signal may go while we wait
  auto timer = waiters->timers.emplace(waiters->timers.end(), waiters->executor,
                                       asio::steady_timer::time_point::max());
  struct Remove {
    std::shared_ptr<Waiters> waiters;
    std::list<asio::steady_timer>::iterator timer;
    ~Remove() { waiters->timers.erase(timer); }
  } remove{waiters, timer};
  co_await timer->async_wait(asio::as_tuple(asio::use_awaitable));
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) throw_cancelled();
}

void Signal::notify_all() {
  for (auto& timer : waiters_->timers) timer.cancel();
}

struct Spawned::State {
  explicit State(const Executor& executor_in) : executor(executor_in), ended(executor_in) {}
  Executor executor;
  asio::cancellation_signal cancellation;
  Signal ended;
  bool done = false;
};

Spawned::Spawned(Spawned&&) noexcept = default;
Spawned& Spawned::operator=(Spawned&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}
Spawned::~Spawned() {
  cancel();
}

void Spawned::cancel() {
  if (!state_ || state_->done) return;
  state_->cancellation.emit(asio::cancellation_type::all);
  // From outside the loop the emission is only queued, and it refers into the state.
  asio::post(state_->executor, [state = state_] {});
}
void Spawned::detach() {
  state_.reset();
}
bool Spawned::done() const {
  return !state_ || state_->done;
}

Task<> Spawned::join() {
  const auto state = state_;
  while (state && !state->done) co_await state->ended.wait();
}

namespace {

// Ends a spawned Task's State: when the Task has ended, or when the loop is destroyed under it, so
// that nobody tries to cancel what is no longer there.
class End {
 public:
  explicit End(std::shared_ptr<Spawned::State> state) : state_(std::move(state)) {}
  End(End&&) noexcept = default;
  ~End() {
    if (state_) state_->done = true;
  }
  void operator()(const std::exception_ptr& error) {
    state_->done = true;
    state_->ended.notify_all();
    if (error && !is_cancellation(error)) die_of(error);
  }

 private:
  std::shared_ptr<Spawned::State> state_;
};

}  // namespace

Spawned spawn(Executor executor, Task<> task) {
  auto state = std::make_shared<Spawned::State>(executor);
  asio::co_spawn(executor, std::move(task),
                 asio::bind_cancellation_slot(state->cancellation.slot(), End(state)));
  return Spawned(std::move(state));
}

struct Semaphore::State {
  struct Waiter {
    explicit Waiter(Executor executor) : granted(executor) {}
    bool is_granted = false;
    Signal granted;
  };
  using Queue = std::list<std::shared_ptr<Waiter>>;

  // A waiter that is cancelled leaves the queue; a permit it was given meanwhile goes to the next
  // one.
  struct Place {
    explicit Place(State& s)
        : state(s),
          waiter(std::make_shared<Waiter>(s.executor)),
          self(s.waiting.insert(s.waiting.end(), waiter)) {}
    ~Place() {
      if (!waiter->is_granted) {
        state.waiting.erase(self);
      } else if (!is_taken) {
        state.release();
      }
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    State& state;
    std::shared_ptr<Waiter> waiter;
    Queue::iterator self;
    bool is_taken = false;
  };

  // To the one that has waited longest; newcomers do not overtake it.
  void release() {
    if (owed > 0) {
      --owed;
      return;
    }
    if (waiting.empty()) {
      ++free;
      return;
    }
    const auto next = waiting.front();
    waiting.pop_front();
    next->is_granted = true;
    next->granted.notify_all();
  }

  Executor executor;
  size_t free;      // 0 while somebody waits
  size_t owed = 0;  // permits that are not given again when they come back
  Queue waiting = {};
};

Semaphore::Semaphore(Executor executor, size_t limit)
    : state_(std::make_shared<State>(State{.executor = std::move(executor), .free = limit})) {}
Semaphore::~Semaphore() = default;

void Semaphore::shrink() {
  if (state_->free > 0) {
    --state_->free;
  } else {
    ++state_->owed;
  }
}

void Semaphore::grow() {
  state_->release();  // pays back before it gives
}

Semaphore::Permit::~Permit() {
  if (owner_) owner_->release();
}

Task<Semaphore::Permit> Semaphore::acquire() {
  const auto state = state_;
  if (state->free > 0) {
    --state->free;
    co_return Permit(state);
  }
  State::Place place(*state);
  while (!place.waiter->is_granted) co_await place.waiter->granted.wait();
  place.is_taken = true;
  co_return Permit(state);
}

Task<bool> with_deadline(Clock& clock, Instant deadline, Task<> task) {
  using namespace asio::experimental::awaitable_operators;
  const auto first = co_await (std::move(task) || clock.sleep_until(deadline));
  co_return first.index() == 0;
}

Task<> all(std::vector<Task<>> tasks) {
  if (tasks.empty()) co_return;
  const auto executor = co_await asio::this_coro::executor;
  using Operation = decltype(asio::co_spawn(executor, std::declval<Task<>>(), asio::deferred));
  std::vector<Operation> operations;
  operations.reserve(tasks.size());
  for (auto& task : tasks) {
    operations.push_back(asio::co_spawn(executor, std::move(task), asio::deferred));
  }
  const auto [order, errors] =
      co_await asio::experimental::make_parallel_group(std::move(operations))
          .async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
  for (const size_t i : order) {
    if (errors[i]) std::rethrow_exception(errors[i]);
  }
}

}  // namespace grapnel
