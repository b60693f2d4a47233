#include "local/builtin/job/plan.h"

#include <algorithm>
#include <limits>

#include "local/builtin/job/pod_of_job.h"
#include "local/builtin/job/tally.h"

namespace grapnel::local {
namespace {

using runtime::Event;
using runtime::ObjectRef;
using runtime::Plan;

constexpr std::string_view kOurs = "kubernetes.io/job-controller";
constexpr seconds kFirstBackoff{10};
constexpr minutes kLongestBackoff{10};
// One plan asks for no more than this; the next one continues.
constexpr size_t kMostCreates = 500;

ObjectRef ref(const Job& job) {
  return {&kube::kinds::kJob, job.meta.key, job.meta.uid};
}
ObjectRef ref(const JobPod& pod) {
  return {&kube::kinds::kPod, pod.meta.key, pod.meta.uid};
}

// Takes our finalizer from a pod and leaves others' in place.
void release(Plan& plan, const JobPod& pod) {
  JsonArray others;
  for (const auto& finalizer : pod.meta.finalizers) {
    if (finalizer.view() != kTrackingFinalizer) others.emplace_back(finalizer.view());
  }
  plan.add(runtime::Patch{.target = ref(pod),
                          .body = JsonObject{{"metadata", JsonObject{{"finalizers", others}}}},
                          .if_version = pod.meta.resource_version});
}

Plan release_all(const JobObserved& o) {
  Plan plan;
  for (const auto* pod : o.pods) {
    if (pod->has_tracking_finalizer()) release(plan, *pod);
  }
  return plan;
}

void set_condition(JobStatus& status, std::string_view type, bool value, std::string reason,
                   std::string message, Time now) {
  const std::string_view text = value ? "True" : "False";
  auto found = std::ranges::find(status.conditions, type, &JobCondition::type);
  if (found == status.conditions.end()) {
    found =
        status.conditions.insert(status.conditions.end(), JobCondition{.type = std::string(type)});
  } else if (found->status == text) {
    return;
  }
  found->status = text;
  found->reason = std::move(reason);
  found->message = std::move(message);
  found->last_probe_time = now;
  found->last_transition_time = now;
}

Plan finished(const JobObserved& o, Time now) {
  Plan plan = release_all(o);
  const Job& job = *o.job;
  if (!job.spec.ttl_seconds_after_finished || job.meta.is_being_deleted()) return plan;
  const auto* end = job.status.condition("Complete");
  if (end == nullptr) end = job.status.condition("Failed");
  const Time due =
      end->last_transition_time.value_or(now) + seconds(*job.spec.ttl_seconds_after_finished);
  if (due <= now) {
    plan.add(runtime::Delete{ref(job), runtime::Delete::Propagation::kForeground});
  } else {
    plan.look_again_in(due - now);
  }
  return plan;
}

// One round over a Job that is not finished.
class Round {
 public:
  Round(const JobObserved& o, Time now)
      : o_(o), job_(*o.job), now_(now), tally_(tally(job_, o.pods)), status_(job_.status) {}

  Plan run() {
    for (const auto* pod : tally_.to_release) release(plan_, *pod);
    begin_or_suspend();
    write_counts(job_, tally_, status_);
    if (const auto verdict = failure()) {
      end_with("FailureTarget", "Failed", *verdict);
    } else if (const auto success = this->success()) {
      end_with("SuccessCriteriaMet", "Complete", *success);
    } else if (job_.spec.suspended()) {
      send_away(tally_.active.size());
    } else if (!job_.meta.is_being_deleted()) {
      match_parallelism();
      watch_deadline();
    }
    plan_.set_status(ref(job_), encode_status(job_.status), encode_status(status_));
    return std::move(plan_);
  }

 private:
  void begin_or_suspend() {
    if (job_.spec.suspended()) {
      const bool was = job_.status.condition("Suspended") != nullptr;
      set_condition(status_, "Suspended", true, "JobSuspended", "Job suspended", now_);
      status_.start_time.reset();
      if (!was) plan_.emit(ref(job_), Event::Type::kNormal, "Suspended", "Job suspended");
      return;
    }
    if (!status_.start_time) status_.start_time = now_;
    if (job_.status.condition("Suspended") != nullptr) {
      set_condition(status_, "Suspended", false, "JobResumed", "Job resumed", now_);
      status_.start_time = now_;
      plan_.emit(ref(job_), Event::Type::kNormal, "Resumed", "Job resumed");
    }
  }

  int64_t backoff_limit() const {
    const int64_t otherwise =
        job_.spec.backoff_limit_per_index ? std::numeric_limits<int32_t>::max() : 6;
    return job_.spec.backoff_limit.value_or(otherwise);
  }

  int64_t all_failures() const {
    return tally_.failures + static_cast<int64_t>(tally_.uncounted.failed.size());
  }

  // Containers that restart in place count as failures of the Job too.
  bool restarted_too_often() const {
    if (string_or(at(job_.spec.pod_template, "spec", "restartPolicy")) != "OnFailure") return false;
    int64_t restarts = 0;
    for (const auto* pod : tally_.active) restarts += pod->restarts;
    return backoff_limit() == 0 ? restarts > 0 : restarts >= backoff_limit();
  }

  std::optional<Verdict> failure() const {
    if (const auto* target = job_.status.condition("FailureTarget")) {
      return Verdict{target->reason, target->message};
    }
    if (job_.status.condition("SuccessCriteriaMet") != nullptr) return std::nullopt;
    if (tally_.policy_verdict) return tally_.policy_verdict;
    if (all_failures() > backoff_limit() || restarted_too_often()) {
      return Verdict{"BackoffLimitExceeded", "Job has reached the specified backoff limit"};
    }
    if (past_deadline()) {
      return Verdict{"DeadlineExceeded", "Job was active longer than specified deadline"};
    }
    if (job_.spec.backoff_limit_per_index && job_.spec.completions) {
      if (job_.spec.max_failed_indexes &&
          tally_.failed_indexes.size() > *job_.spec.max_failed_indexes) {
        return Verdict{"MaxFailedIndexesExceeded",
                       "Job has exceeded the specified maximal number of failed indexes"};
      }
      const int64_t ended = tally_.failed_indexes.size() + tally_.completed.size();
      if (!tally_.failed_indexes.empty() && ended >= *job_.spec.completions) {
        return Verdict{"FailedIndexes", "Job has failed indexes"};
      }
    }
    return std::nullopt;
  }

  std::optional<Verdict> success() const {
    if (const auto* met = job_.status.condition("SuccessCriteriaMet")) {
      return Verdict{met->reason, met->message};
    }
    if (const auto rule = matched_success_rule()) {
      return Verdict{"SuccessPolicy", fmt::format("Matched rules at index {}", *rule)};
    }
    const int64_t succeeded =
        tally_.succeeded + static_cast<int64_t>(tally_.uncounted.succeeded.size());
    const bool reached =
        job_.spec.completions
            ? succeeded >= *job_.spec.completions
            // A work queue: one success means that the work is done, and the other pods finish.
            : succeeded > 0 && tally_.active.empty();
    if (!reached) return std::nullopt;
    return Verdict{"CompletionsReached", "Reached expected number of succeeded pods"};
  }

  std::optional<size_t> matched_success_rule() const {
    if (!job_.spec.success_policy || !job_.spec.completions) return std::nullopt;
    const auto& rules = job_.spec.success_policy->rules;
    for (size_t i = 0; i < rules.size(); ++i) {
      int64_t met = tally_.completed.size();
      int64_t wanted = *job_.spec.completions;
      if (rules[i].succeeded_indexes) {
        const auto indexes = Indexes::parse(*rules[i].succeeded_indexes, *job_.spec.completions);
        if (!indexes) continue;
        met = indexes->count_common(tally_.completed);
        wanted = indexes->size();
      }
      if (rules[i].succeeded_count) wanted = *rules[i].succeeded_count;
      if (met >= wanted) return i;
    }
    return std::nullopt;
  }

  // First the target condition, then the end of all pods, and when none is left, the final
  // condition.
  void end_with(std::string_view target, std::string_view last, const Verdict& verdict) {
    const bool first = job_.status.condition(target) == nullptr;
    set_condition(status_, target, true, verdict.reason, verdict.message, now_);
    erase_active(tally_.active.size());
    const bool pods_left = !tally_.active.empty() || !tally_.terminating.empty();
    if (first || pods_left || tally_.has_uncounted()) return;
    set_condition(status_, last, true, verdict.reason, verdict.message, now_);
    status_.ready = 0;
    if (last == "Complete") {
      status_.completion_time = now_;
      plan_.emit(ref(job_), Event::Type::kNormal, "Completed", "Job completed");
    } else {
      plan_.emit(ref(job_), Event::Type::kWarning, verdict.reason, verdict.message);
    }
  }

  bool past_deadline() const {
    if (!job_.spec.active_deadline_seconds || !status_.start_time || job_.spec.suspended()) {
      return false;
    }
    return now_ - *status_.start_time >= seconds(*job_.spec.active_deadline_seconds);
  }

  void watch_deadline() {
    if (!job_.spec.active_deadline_seconds || !status_.start_time) return;
    plan_.look_again_in(*status_.start_time + seconds(*job_.spec.active_deadline_seconds) - now_);
  }

  int64_t wanted_active() const {
    const int64_t parallelism = job_.spec.parallelism.value_or(1);
    if (!job_.spec.completions) {
      // A work queue: after the first success no new pod is started.
      const bool any =
          tally_.succeeded + static_cast<int64_t>(tally_.uncounted.succeeded.size()) > 0;
      return any ? std::min<int64_t>(parallelism, static_cast<int64_t>(tally_.active.size()))
                 : parallelism;
    }
    const int64_t done = tally_.succeeded +
                         static_cast<int64_t>(tally_.uncounted.succeeded.size()) +
                         tally_.failed_indexes.size();
    return std::max<int64_t>(0, std::min(parallelism, *job_.spec.completions - done));
  }

  void match_parallelism() {
    const auto active = static_cast<int64_t>(tally_.active.size());
    const int64_t wanted = wanted_active();
    if (active > wanted) return send_away(static_cast<size_t>(active - wanted));
    int64_t missing = wanted - active;
    if (waits_for_terminating()) missing -= static_cast<int64_t>(tally_.terminating.size());
    if (missing <= 0) return;
    if (const auto delay = backoff()) return plan_.look_again_in(*delay);
    create(std::min(static_cast<size_t>(missing), kMostCreates));
  }

  bool waits_for_terminating() const {
    return job_.spec.pod_replacement_policy == PodReplacementPolicy::Failed ||
           job_.spec.pod_failure_policy.has_value();
  }

  // How long to wait before the next pod, because the last ones failed.
  std::optional<Duration> backoff() const {
    if (tally_.failed.empty()) return std::nullopt;
    Time last{};
    for (const auto* pod : tally_.failed) {
      last = std::max(last, pod->finished.value_or(pod->meta.deleted.value_or(pod->meta.created)));
    }
    const auto doublings = std::min<size_t>(tally_.failed.size() - 1, 10);
    const Duration delay =
        std::min<Duration>(kFirstBackoff * (int64_t{1} << doublings), kLongestBackoff);
    const Duration left = last + delay - now_;
    return left > Duration::zero() ? std::optional(left) : std::nullopt;
  }

  void create(size_t count) {
    ChildNames names;
    for (const auto* pod : o_.pods) names.take(pod->meta.name());
    for (const auto& index : free_slots(count)) {
      plan_.add(runtime::Create{&kube::kinds::kPod,
                                pod_of_job(job_, {.name = pod_name(job_, index, names),
                                                  .index = index,
                                                  .index_failures = failures_of(index)})});
    }
  }

  // The lowest indexes that have neither a pod nor a result; without indexes, this many empty ones.
  std::vector<std::optional<int64_t>> free_slots(size_t count) const {
    if (!job_.spec.indexed()) return std::vector<std::optional<int64_t>>(count);
    Indexes busy = tally_.completed;
    const auto mark = [&](const std::vector<const JobPod*>& pods) {
      for (const auto* pod : pods) {
        if (const auto index = pod->index()) busy.insert(*index);
      }
    };
    mark(tally_.active);
    if (waits_for_terminating()) mark(tally_.terminating);
    std::vector<std::optional<int64_t>> slots;
    for (int64_t next = 0; slots.size() < count; ++next) {
      next = busy.first_missing(next);
      if (next >= job_.spec.completions.value_or(0)) break;
      if (!tally_.failed_indexes.contains(next)) slots.emplace_back(next);
    }
    return slots;
  }

  std::optional<int64_t> failures_of(std::optional<int64_t> index) const {
    if (!index || !job_.spec.backoff_limit_per_index) return std::nullopt;
    return std::ranges::count_if(tally_.failed,
                                 [&](const JobPod* pod) { return pod->index() == index; });
  }

  // The pods that are furthest from being useful are deleted first.
  void erase_active(size_t count) {
    for (const JobPod* pod : least_needed(count)) plan_.add(runtime::Delete{ref(*pod)});
  }

  // The end of a pod that is no longer wanted is not a failure. So its finalizer is removed first,
  // and the end is not counted.
  void send_away(size_t count) {
    const auto pods = least_needed(count);
    for (const JobPod* pod : pods) {
      if (pod->has_tracking_finalizer()) release(plan_, *pod);
    }
    if (!pods.empty()) plan_.then();
    for (const JobPod* pod : pods) plan_.add(runtime::Delete{ref(*pod)});
  }

  std::vector<const JobPod*> least_needed(size_t count) const {
    auto pods = tally_.active;
    std::ranges::sort(pods, [](const JobPod* a, const JobPod* b) {
      if (a->ready != b->ready) return !a->ready;
      if (a->index() != b->index()) return a->index() > b->index();
      return a->meta.name() > b->meta.name();
    });
    pods.resize(std::min(count, pods.size()));
    return pods;
  }

  const JobObserved& o_;
  const Job& job_;
  Time now_;
  Tally tally_;
  JobStatus status_;
  Plan plan_;
};

}  // namespace

Plan plan(const JobObserved& o, Time now) {
  if (o.job == nullptr) return release_all(o);
  const Job& job = *o.job;
  if (job.spec.managed_by && *job.spec.managed_by != kOurs) return {};
  if (job.status.condition("Complete") != nullptr || job.status.condition("Failed") != nullptr) {
    return finished(o, now);
  }
  return Round(o, now).run();
}

}  // namespace grapnel::local
