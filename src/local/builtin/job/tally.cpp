#include "local/builtin/job/tally.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "local/builtin/job/failure_policy.h"

namespace grapnel::local {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

bool replaces_only_failed(const JobSpec& spec) {
  return spec.pod_failure_policy.has_value() ||
         spec.pod_replacement_policy == PodReplacementPolicy::Failed;
}

// A pod that is being deleted counts as failed at once, unless the Job waits for its end.
bool counts_as_failed(const Job& job, const JobPod& pod) {
  if (pod.phase == "Failed") return true;
  return pod.meta.is_being_deleted() && pod.phase != "Succeeded" && !replaces_only_failed(job.spec);
}

int64_t failures_before(const JobPod& pod) {
  const auto text = pod.meta.annotations.get(kIndexFailureCount);
  int64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

int64_t index_bound(const Job& job) {
  return job.spec.completions.value_or(std::numeric_limits<int64_t>::max());
}

class Counter {
 public:
  Counter(const Job& job, Tally& out) : job_(job), out_(out) {
    if (job.status.uncounted_terminated_pods) noted_ = *job.status.uncounted_terminated_pods;
    out.completed =
        Indexes::parse(job.status.completed_indexes, index_bound(job)).value_or(Indexes());
    out.failed_indexes = Indexes::parse(job.status.failed_indexes.value_or(""), index_bound(job))
                             .value_or(Indexes());
    out.succeeded = job.spec.indexed() ? 0 : job.status.succeeded.value_or(0);
    out.failures = job.status.failed.value_or(0);
  }

  void add(const JobPod& pod) {
    seen_.push_back(pod.meta.uid.text());
    if (pod.phase == "Succeeded") {
      add_succeeded(pod);
    } else if (counts_as_failed(job_, pod)) {
      out_.failed.push_back(&pod);
      if (pod.meta.is_being_deleted() && !pod.is_terminal()) out_.terminating.push_back(&pod);
      add_failed(pod);
    } else if (pod.meta.is_being_deleted()) {
      out_.terminating.push_back(&pod);
    } else {
      out_.active.push_back(&pod);
      if (pod.ready) ++out_.ready;
    }
  }

  void finish() {
    // Noted earlier and gone since: the finalizer was taken away, the number not yet written.
    for (const auto& uid : noted_.succeeded) {
      if (!contains(seen_, uid)) ++out_.succeeded;
    }
    for (const auto& uid : noted_.failed) {
      if (!contains(seen_, uid)) ++out_.failures;
    }
    if (job_.spec.indexed()) out_.succeeded = out_.completed.size();
  }

 private:
  void add_succeeded(const JobPod& pod) {
    const std::string uid = pod.meta.uid.text();
    if (job_.spec.indexed()) {
      const auto index = pod.index();
      const bool to_note = index && *index < index_bound(job_) && !out_.completed.contains(*index);
      if (to_note) {
        out_.completed.insert(*index);
      } else if (pod.has_tracking_finalizer()) {
        out_.to_release.push_back(&pod);
      }
      return;
    }
    if (contains(noted_.succeeded, uid)) {
      ++out_.succeeded;
      if (pod.has_tracking_finalizer()) out_.to_release.push_back(&pod);
    } else if (pod.has_tracking_finalizer()) {
      out_.uncounted.succeeded.push_back(uid);
    }
  }

  void add_failed(const JobPod& pod) {
    const std::string uid = pod.meta.uid.text();
    if (contains(noted_.failed, uid)) {
      ++out_.failures;
      if (pod.has_tracking_finalizer()) out_.to_release.push_back(&pod);
      return;
    }
    if (!pod.has_tracking_finalizer()) return;  // counted long ago
    const auto match = match_failure_policy(job_, pod);
    if (match && match->action == FailureAction::Ignore) {
      out_.to_release.push_back(&pod);
      return;
    }
    if (match && match->action == FailureAction::FailJob && !out_.policy_verdict) {
      out_.policy_verdict = Verdict{"PodFailurePolicy", match->message};
    }
    note_failed_index(pod, match && match->action == FailureAction::FailIndex);
    out_.uncounted.failed.push_back(uid);
  }

  void note_failed_index(const JobPod& pod, bool by_policy) {
    const auto index = pod.index();
    if (!index || !job_.spec.backoff_limit_per_index) return;
    if (by_policy || failures_before(pod) + 1 > *job_.spec.backoff_limit_per_index) {
      out_.failed_indexes.insert(*index);
    }
  }

  const Job& job_;
  Tally& out_;
  UncountedPods noted_;
  std::vector<std::string> seen_;
};

}  // namespace

Tally tally(const Job& job, const std::vector<const JobPod*>& pods) {
  Tally out;
  Counter counter(job, out);
  for (const auto* pod : pods) counter.add(*pod);
  counter.finish();
  return out;
}

void write_counts(const Job& job, const Tally& tally, JobStatus& status) {
  const auto unless_zero = [](int64_t n) { return n == 0 ? std::nullopt : std::optional(n); };
  status.active = unless_zero(static_cast<int64_t>(tally.active.size()));
  status.ready = tally.ready;
  status.terminating = static_cast<int64_t>(tally.terminating.size());
  status.succeeded = unless_zero(tally.succeeded);
  status.failed = unless_zero(tally.failures);
  status.uncounted_terminated_pods = tally.uncounted;
  if (!job.spec.indexed()) return;
  status.completed_indexes = tally.completed.text();
  if (job.spec.backoff_limit_per_index) status.failed_indexes = tally.failed_indexes.text();
}

}  // namespace grapnel::local
