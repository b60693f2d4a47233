#include "runtime/external_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"

namespace grapnel::runtime {
namespace {

constexpr int kMostDoublings = 16;

double to_seconds(Duration length) {
  return std::chrono::duration<double>(length).count();
}

Duration doubled(Duration first, int times, Duration longest) {
  return std::min(first * (int64_t{1} << std::min(times, kMostDoublings)), longest);
}

// An executor that throws must not take the others down with it.
Task<Result<Json>> guarded(std::string executor, Task<Result<Json>> task) {
  try {
    co_return co_await std::move(task);
  } catch (const std::exception& e) {
    if (is_cancellation(std::current_exception())) throw;
    log_error("an executor failed", {{"executor", executor}, {"what", e.what()}});
    co_return fail(Error{.reason = Reason::kUnknown, .message = e.what(), .ambiguous = true});
  }
}

bool same(const Question& a, const Question& b) {
  return a.executor == b.executor && a.what == b.what && a.every == b.every;
}

}  // namespace

ExternalRunner::ExternalRunner(Executor executor, Clock& clock, Random& random,
                               ExternalOptions options)
    : executor_(executor),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      permits_(executor, options_.at_once) {}

ExternalRunner::~ExternalRunner() = default;

void ExternalRunner::add(std::string name, ExternalExecutor executor) {
  executors_[std::move(name)] = std::move(executor);
}

ExternalRunner::Object& ExternalRunner::object(size_t lane, const kube::Key& key,
                                               const kube::Uid& uid) {
  const auto found = objects_.find({lane, key});
  if (found != objects_.end() && found->second.uid != uid) forget(lane, key);
  Object& out = objects_[{lane, key}];
  out.uid = uid;
  return out;
}

ExternalRunner::Object* ExternalRunner::find(const Id& id, const kube::Uid& uid) {
  const auto found = objects_.find(id);
  return found == objects_.end() || found->second.uid != uid ? nullptr : &found->second;
}

const External& ExternalRunner::known(size_t lane, const kube::Key& key, const kube::Uid& uid) {
  static const External nothing;
  const Object* found = find({lane, key}, uid);
  return found == nullptr ? nothing : found->known;
}

void ExternalRunner::forget(size_t lane, const kube::Key& key) {
  const auto found = objects_.find({lane, key});
  if (found == objects_.end()) return;
  for (auto& [name, asking] : found->second.asking) retire(std::move(asking.task));
  for (auto& [id, task] : found->second.calling) retire(std::move(task));
  objects_.erase(found);
}

void ExternalRunner::retire(Spawned task) {
  std::erase_if(retired_, [](const Spawned& each) { return each.done(); });
  task.cancel();
  if (!task.done()) retired_.push_back(std::move(task));
}

Task<> ExternalRunner::stop() {
  while (!objects_.empty()) {
    const auto [lane, key] = objects_.begin()->first;
    forget(lane, key);
  }
  for (auto& task : retired_) co_await task.join();
  retired_.clear();
}

// ---- questions ----------------------------------------------------------------------------------

void ExternalRunner::ask(size_t lane, const kube::Key& key, const kube::Uid& uid,
                         std::vector<Question> questions) {
  if (questions.empty() && !objects_.contains({lane, key})) return;
  Object& of = object(lane, key, uid);
  for (auto i = of.asking.begin(); i != of.asking.end();) {
    auto& [name, asking] = *i;
    const auto still = std::ranges::find(questions, name, &Question::name);
    if (still != questions.end() && same(*still, asking.question)) {
      ++i;
      continue;
    }
    // Asked otherwise, the old answer says nothing. Asked more or less often, it still holds.
    if (still == questions.end() || still->what != asking.question.what ||
        still->executor != asking.question.executor) {
      of.known.facts.erase(name);
    }
    retire(std::move(asking.task));
    i = of.asking.erase(i);
  }
  for (Question& question : questions) {
    if (of.asking.contains(question.name)) continue;
    Asking& asking = of.asking[question.name];
    asking.question = question;
    asking.task = spawn(executor_, keep_asking({lane, key}, uid, std::move(question)));
  }
}

Task<> ExternalRunner::keep_asking(Id id, kube::Uid uid, Question question) {
  const auto executor = executors_.find(question.executor);
  int failures = 0;
  for (;;) {
    Result<Json> answer =
        fail(Reason::kUsage, "nobody can be asked: no executor is called '{}'", question.executor);
    if (executor != executors_.end() && executor->second.ask) {
      answer = co_await in_time(question.executor, executor->second.ask(question.what), false);
    }
    failures = answer ? 0 : failures + 1;
    Object* of = find(id, uid);
    const auto asking =
        of == nullptr ? std::map<std::string, Asking>::iterator() : of->asking.find(question.name);
    // Meanwhile something else is asked by that name, or nothing.
    if (of == nullptr || asking == of->asking.end() || !same(asking->second.question, question)) {
      co_return;
    }
    if (note(of->known.facts[question.name], std::move(answer)) && wake_)
      wake_(id.first, id.second);
    const Duration slowest = std::max(question.every, options_.slowest_question);
    co_await clock_.sleep(jittered(doubled(question.every, failures, slowest)));
  }
}

// True when a planner may see something new.
bool ExternalRunner::note(Fact& fact, Result<Json> answer) {
  if (!answer) {
    const bool is_first = !fact.trouble;
    if (is_first) fact.failing_since = clock_.now();
    fact.trouble = std::move(answer.error());
    return is_first;
  }
  const bool is_news = fact.trouble || fact.answer != *answer;
  fact = {.answer = std::move(*answer), .answered = clock_.now()};
  return is_news;
}

Duration ExternalRunner::jittered(Duration length) {
  return length + std::chrono::duration_cast<Duration>(length * (0.1 * random_.uniform()));
}

// ---- calls --------------------------------------------------------------------------------------

void ExternalRunner::make(size_t lane, const kube::Key& key, const kube::Uid& uid,
                          std::vector<Call> calls) {
  if (calls.empty() && !objects_.contains({lane, key})) return;
  Object& of = object(lane, key, uid);
  of.wanted.clear();
  for (Call& call : calls) of.wanted[call.id] = std::move(call);
  std::erase_if(of.known.calls, [&](const auto& item) {
    return !of.wanted.contains(item.first) && item.second.phase != CallState::Phase::kUnderWay;
  });
  std::erase_if(of.calling, [](const auto& item) { return item.second.done(); });
  for (const auto& [call_id, call] : of.wanted) {
    if (of.calling.contains(call_id) || of.known.is_done(call_id)) continue;
    of.known.calls[call_id].phase = CallState::Phase::kUnderWay;
    of.calling[call_id] = spawn(executor_, keep_calling({lane, key}, uid, call));
  }
}

// Until it is done, or no plan wants it any more.
Task<> ExternalRunner::keep_calling(Id id, kube::Uid uid, Call call) {
  const auto executor = executors_.find(call.executor);
  for (;;) {
    if (options_.may_call && !options_.may_call()) co_return;
    Result<Json> answer =
        fail(Reason::kUsage, "nobody can do it: no executor is called '{}'", call.executor);
    if (executor != executors_.end() && executor->second.call) {
      answer = co_await in_time(call.executor, executor->second.call(call.what, call.id), true);
    }
    Object* of = find(id, uid);
    if (of == nullptr) co_return;
    CallState& state = of->known.calls[call.id];
    ++state.tries;
    state.ended = clock_.now();
    if (answer) {
      state.phase = CallState::Phase::kDone;
      state.answer = std::move(*answer);
      state.error.reset();
    } else {
      state.phase = CallState::Phase::kFailed;
      state.error = std::move(answer.error());
    }
    const int tries = state.tries;
    const bool ends = state.phase == CallState::Phase::kDone || !of->wanted.contains(call.id);
    const Duration asked =
        state.error ? state.error->retry_after.value_or(Duration::zero()) : Duration::zero();
    if (wake_) wake_(id.first, id.second);
    if (ends) co_return;
    co_await clock_.sleep(std::max(
        asked, jittered(doubled(options_.first_pause, tries - 1, options_.longest_pause))));
    of = find(id, uid);
    if (of == nullptr) co_return;
    if (!of->wanted.contains(call.id)) {
      of->known.calls.erase(call.id);
      co_return;
    }
    of->known.calls[call.id].phase = CallState::Phase::kUnderWay;
  }
}

Task<Result<Json>> ExternalRunner::in_time(std::string executor, Task<Result<Json>> task,
                                           bool is_call) {
  const auto permit = co_await permits_.acquire();
  const Duration timeout = executors_.at(executor).timeout;
  Result<Json> answer =
      fail(Error{.reason = Reason::kTimeout,
                 .message = fmt::format("no answer within {} s", to_seconds(timeout)),
                 .ambiguous = is_call});
  auto asking = [](std::string who, Task<Result<Json>> what, Result<Json>& out) -> Task<> {
    out = co_await guarded(std::move(who), std::move(what));
  };
  co_await with_deadline(clock_, clock_.instant() + timeout,
                         asking(std::move(executor), std::move(task), answer));
  co_return answer;
}

}  // namespace grapnel::runtime
