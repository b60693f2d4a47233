#include "local/builtin/job/failure_policy.h"

#include <algorithm>

namespace grapnel::local {
namespace {

const ContainerExit* matching_exit(const OnExitCodes& rule, const JobPod& pod) {
  for (const auto& exit : pod.exits) {
    if (rule.container_name && *rule.container_name != exit.name) continue;
    const bool listed = std::ranges::find(rule.values, exit.exit_code) != rule.values.end();
    if (listed == (rule.op == ExitCodeOperator::In)) return &exit;
  }
  return nullptr;
}

const OnPodCondition* matching_condition(const FailureRule& rule, const JobPod& pod) {
  for (const auto& wanted : rule.on_pod_conditions) {
    const auto found = std::ranges::find_if(pod.conditions, [&](const OnPodCondition& seen) {
      return seen.type == wanted.type && seen.status == wanted.status;
    });
    if (found != pod.conditions.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

std::optional<PolicyMatch> match_failure_policy(const Job& job, const JobPod& pod) {
  if (!job.spec.pod_failure_policy) return std::nullopt;
  const auto& rules = job.spec.pod_failure_policy->rules;
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto& rule = rules[i];
    if (rule.on_exit_codes) {
      if (const auto* exit = matching_exit(*rule.on_exit_codes, pod)) {
        return PolicyMatch{
            rule.action,
            fmt::format(
                "Container {} for pod {} failed with exit code {} matching {} rule at index {}",
                exit->name, pod.meta.key.text(), exit->exit_code, api::name_of(rule.action), i)};
      }
    } else if (const auto* condition = matching_condition(rule, pod)) {
      return PolicyMatch{
          rule.action,
          fmt::format("Pod {} has condition {} matching {} rule at index {}", pod.meta.key.text(),
                      condition->type, api::name_of(rule.action), i)};
    }
  }
  return std::nullopt;
}

}  // namespace grapnel::local
