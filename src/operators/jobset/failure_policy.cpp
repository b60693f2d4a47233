#include "operators/jobset/failure_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "document/pattern.h"
#include "operators/jobset/job_builder.h"

namespace grapnel::jobset {
namespace {

using api::FailureAction;

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

bool any_matches(const std::vector<std::string>& patterns, std::string_view message) {
  return std::ranges::any_of(patterns, [&](const std::string& expression) {
    const auto pattern = Pattern::compile(expression);
    return pattern && pattern->matches(message);  // a wrong expression matches nothing
  });
}

bool matches(const api::FailureRule& rule, const FailedJob& failed) {
  const auto& reasons = rule.on_job_failure_reasons;
  const auto& patterns = rule.on_job_failure_message_patterns;
  if (!reasons.empty() && !contains(reasons, failed.why.reason)) return false;
  if (!patterns.empty() && !any_matches(patterns, failed.why.message)) return false;
  return rule.targets.empty() || contains(rule.targets, failed.job->place->replicated_job);
}

// The one that failed first among those the rule matches; all when there is no rule.
const ChildJob* first_failed(const Children& children, const api::FailureRule* rule) {
  const FailedJob* first = nullptr;
  for (const FailedJob& failed : children.failed) {
    if (rule != nullptr && !matches(*rule, failed)) continue;
    if (first == nullptr || failed.why.since < first->why.since) first = &failed;
  }
  return first == nullptr ? nullptr : first->job;
}

std::string with_job(std::string_view message, const ChildJob& job) {
  return fmt::format("{} (first failed job: {})", message, job.meta.name());
}

// Of the JobSet and of Jobs alone: maxRestarts limits them together.
int64_t restarts_that_count(const api::JobSetStatus& status, bool strict) {
  int64_t restarts = status.restarts_count_towards_max.value_or(0);
  if (strict) return restarts;
  for (const auto& replicated : status.replicated_jobs) {
    const auto& counts = replicated.job_restarts_count_towards_max;
    restarts = std::accumulate(counts.begin(), counts.end(), restarts);
  }
  return restarts;
}

void raise_count(std::vector<int32_t>& counts, int32_t replicas, int32_t index) {
  if (counts.empty()) counts.resize(static_cast<size_t>(std::max(replicas, 0)));
  if (static_cast<size_t>(index) < counts.size()) ++counts[static_cast<size_t>(index)];
}

struct Decision {
  FailureAction action = FailureAction::RestartJobSet;
  std::string condition_reason = "DefaultFailurePolicy";
  const ChildJob* job = nullptr;
};

// Rules without a name are known by their place.
std::string rule_name(const api::FailureRule& rule, size_t index) {
  return rule.name.empty() ? fmt::format("failurePolicyRule{}", index) : rule.name;
}

Decision decide(const api::FailurePolicy& policy, const Children& children) {
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    const auto& rule = policy.rules[i];
    if (const ChildJob* job = first_failed(children, &rule)) {
      return {rule.action, "FailurePolicy_" + rule_name(rule, i), job};
    }
  }
  return {.job = first_failed(children, nullptr)};
}

bool ignores_max_restarts(FailureAction action) {
  return action == FailureAction::RestartJobSetAndIgnoreMaxRestarts ||
         action == FailureAction::RestartJobAndIgnoreMaxRestarts;
}

void restart_job(const api::JobSet& jobset, const Decision& decision, StatusDraft& draft) {
  const auto& place = *decision.job->place;
  const auto* replicated = jobset.find_replicated_job(place.replicated_job);
  if (replicated == nullptr) return;
  auto& status = draft.of(place.replicated_job);
  raise_count(status.job_restarts, replicated->replicas, place.index);
  if (!ignores_max_restarts(decision.action)) {
    raise_count(status.job_restarts_count_towards_max, replicated->replicas, place.index);
  }
}

void restart_jobset(const Decision& decision, const std::string& message, StatusDraft& draft) {
  auto& status = draft.status();
  status.restarts = status.restarts.value_or(0) + 1;
  if (!ignores_max_restarts(decision.action)) {
    status.restarts_count_towards_max = status.restarts_count_towards_max.value_or(0) + 1;
  }
  draft.restart(decision.condition_reason, message);
}

}  // namespace

void apply_failure_policy(const Observed& o, const Children& children, StatusDraft& draft) {
  const api::JobSet& jobset = o.jobset;
  if (!jobset.spec.failure_policy) {
    draft.fail("FailedJobs", with_job("jobset failed due to one or more job failures",
                                      *first_failed(children, nullptr)));
    return;
  }
  const auto& policy = *jobset.spec.failure_policy;
  const Decision decision = decide(policy, children);
  const bool alone = restarts_alone(decision.action);
  if (alone && o.strict) return;  // behind a gate: admission refuses such a rule
  const std::string_view action = api::name_of(decision.action);
  const std::string message =
      with_job(fmt::format("applying {} failure policy action", action), *decision.job);
  if (decision.action == FailureAction::FailJobSet) {
    draft.fail("FailJobSetFailurePolicyAction", message);
    return;
  }
  if (!ignores_max_restarts(decision.action) &&
      restarts_that_count(draft.status(), o.strict) >= policy.max_restarts) {
    draft.fail("ReachedMaxRestarts",
               with_job("jobset failed due to reaching max number of restarts", *decision.job));
    return;
  }
  if (alone) {
    restart_job(jobset, decision, draft);
  } else {
    restart_jobset(decision, message, draft);
  }
  draft.warn(fmt::format("{}FailurePolicyAction", action), message);
}

}  // namespace grapnel::jobset
