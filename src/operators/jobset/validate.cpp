#include "operators/jobset/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/strings.h"
#include "document/pattern.h"
#include "operators/jobset/job_builder.h"
#include "operators/jobset/names.h"
#include "operators/jobset/volume_claims.h"

namespace grapnel::jobset {
namespace {

using api::Faults;
using api::Path;

constexpr size_t kLongestLabel = 63;
constexpr int32_t kMostRestartingReplicas = 1024;
constexpr std::string_view kRuleName = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
constexpr std::array<std::string_view, 5> kFailureReasons{
    "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded",
    "PodFailurePolicy"};

// A DNS label that we made from several names: one that is too long has a reason of its own.
void check_label(Faults& faults, const Path& path, const std::string& label,
                 std::string_view too_long) {
  if (label.size() > kLongestLabel) return faults.invalid(path, label, too_long);
  const std::string why = why_not_dns1035_label(label);
  if (!why.empty()) faults.invalid(path, label, why);
}

void check_network(const api::JobSet& jobset, const Path& spec, Faults& faults) {
  const Path network(spec, "network");
  const Path path(network, "subdomain");
  const auto& subdomain = jobset.spec.network.subdomain;
  if (subdomain.empty()) return;
  const std::string why = why_not_dns1123_subdomain(subdomain);
  if (!why.empty()) faults.invalid(path, subdomain, why);
  check_label(faults, path, subdomain,
              ".spec.network.subdomain is too long, must be less than 63 characters");
}

void check_managed_by(const api::JobSet& jobset, const Path& spec, Faults& faults) {
  if (!jobset.spec.managed_by) return;
  const Path path(spec, "managedBy");
  const std::string& manager = *jobset.spec.managed_by;
  const size_t slash = manager.find('/');
  if (manager.empty()) {
    faults.required(path);
  } else if (slash == std::string::npos || slash == 0 || slash + 1 == manager.size()) {
    faults.invalid(path, manager, "must be a domain-prefixed path (such as \"acme.io/foo\")");
  } else {
    const std::string why = why_not_dns1123_subdomain(manager.substr(0, slash));
    if (!why.empty()) faults.invalid(path, manager.substr(0, slash), why);
    if (!matches_pattern("^[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+$", manager.substr(slash + 1))) {
      faults.invalid(path, manager.substr(slash + 1), "Invalid path");
    }
  }
  if (manager.size() > kLongestLabel) {
    faults.invalid(path, manager, "may not be more than 63 bytes");
  }
}

void check_names(const api::JobSet& jobset, const api::ReplicatedJob& replicated, const Path& path,
                 Faults& faults) {
  check_label(faults, Path(path, "groupName"), replicated.group_name,
              ".spec.replicatedJob[].groupName is too long, must be less than 63 characters");
  // The greatest index makes the longest name.
  const std::string job = job_name(jobset.meta.name(), replicated.name, replicated.replicas - 1);
  const Path name(path, "name");
  check_label(faults, name, job,
              "JobSet name is too long, job names generated for this JobSet will exceed 63 "
              "characters");
  if (!replicated.is_indexed() || !replicated.completions()) return;
  const std::string pod = fmt::format("{}-{}-abcde", job, *replicated.completions() - 1);
  if (job.size() <= kLongestLabel && pod.size() > kLongestLabel) {
    faults.invalid(name, job,
                   "JobSet name is too long, pod names generated for this JobSet will exceed 63 "
                   "characters");
  }
}

void check_counts(const Json& job_spec, const Path& spec, Faults& faults) {
  for (const std::string_view key : {"parallelism", "completions"}) {
    const Json* count = find(job_spec, key);
    if (count == nullptr || count->is_null()) continue;
    const auto number = JsonView(*count).as_int();
    if (!number || *number < 0 || *number > std::numeric_limits<int32_t>::max()) {
      faults.wrong_type(Path(spec, key), *count, "an integer that is not negative");
    }
  }
}

// The original finds out what is missing when the API server refuses its Jobs.
void check_shape(const api::ReplicatedJob& replicated, bool strict, const Path& path,
                 Faults& faults) {
  const Path job(path, "template");
  const Path spec(job, "spec");
  const Json* given = find(replicated.job_template, "spec");
  if (given != nullptr) check_counts(*given, spec, faults);
  if (strict) return;
  if (given == nullptr || !given->is_object()) return faults.required(spec);
  const Path pod(spec, "template");
  const Path pod_spec(pod, "spec");
  if (replicated.pod_spec() == nullptr || !replicated.pod_spec()->is_object()) {
    return faults.required(pod_spec);
  }
  const Json* containers = find(*replicated.pod_spec(), "containers");
  if (containers == nullptr || !containers->is_array() || containers->as_array().empty()) {
    faults.required(Path(pod_spec, "containers"));
  }
}

void check_dependencies(const api::JobSet& jobset, size_t index, bool strict, const Path& path,
                        Faults& faults) {
  const auto& all = jobset.spec.replicated_jobs;
  const auto& replicated = all[index];
  const Path list(path, "dependsOn");
  if (index == 0 && !replicated.depends_on.empty()) {
    return faults.forbidden(list, "DependsOn can't be set for the first ReplicatedJob");
  }
  for (size_t i = 0; i < replicated.depends_on.size(); ++i) {
    const auto& dependency = replicated.depends_on[i];
    const auto earlier = std::span(all).first(strict ? index + 1 : index);
    if (std::ranges::find(earlier, dependency.name, &api::ReplicatedJob::name) == earlier.end()) {
      const Path entry(list, i);
      faults.invalid(Path(entry, "name"), dependency.name,
                     fmt::format("replicatedJob: {} cannot depend on replicatedJob: {}",
                                 replicated.name, dependency.name));
    }
  }
}

void check_replicated_jobs(const api::JobSet& jobset, bool strict, const Path& spec,
                           Faults& faults) {
  const Path list(spec, "replicatedJobs");
  std::set<std::string_view> seen;
  const auto& all = jobset.spec.replicated_jobs;
  bool has_dependencies = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const Path path(list, i);
    if (!seen.insert(all[i].name).second) faults.duplicate(Path(path, "name"), all[i].name);
    if (all[i].replicas < 0) {
      faults.invalid(Path(path, "replicas"), std::to_string(all[i].replicas),
                     "must be greater than or equal to 0");
    }
    check_names(jobset, all[i], path, faults);
    check_shape(all[i], strict, path, faults);
    check_dependencies(jobset, i, strict, path, faults);
    has_dependencies |= !all[i].depends_on.empty();
    if (int64_t{all[i].parallelism().value_or(1)} * all[i].replicas >
        std::numeric_limits<int32_t>::max()) {
      faults.invalid(Path(path, "replicas"), std::to_string(all[i].replicas),
                     fmt::format("the product of replicas and parallelism must not exceed {} for "
                                 "replicatedJob '{}'",
                                 std::numeric_limits<int32_t>::max(), all[i].name));
    }
  }
  if (has_dependencies && jobset.spec.startup_policy.order == api::StartupOrder::InOrder) {
    faults.invalid(spec, "", "StartupPolicy and DependsOn APIs are mutually exclusive");
  }
}

void check_targets(const api::JobSet& jobset, const std::vector<std::string>& targets,
                   const Path& path, std::string_view where, Faults& faults) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (jobset.find_replicated_job(targets[i]) != nullptr) continue;
    faults.invalid(Path(path, i), targets[i],
                   fmt::format("invalid replicatedJob name '{}'{} does not appear in "
                               ".spec.ReplicatedJobs",
                               targets[i], where));
  }
}

void check_rule(const api::JobSet& jobset, const api::FailureRule& rule, bool strict,
                const Path& path, Faults& faults) {
  const Path name(path, "name");
  if (rule.name.size() > 128) {
    faults.invalid(name, rule.name.substr(0, 80),
                   fmt::format("invalid failure policy rule name of length {}, the rule name must "
                               "be at least 1 characters long and at most 128 characters long",
                               rule.name.size()));
  }
  if (!rule.name.empty() && !matches_pattern(kRuleName, rule.name)) {
    faults.invalid(name, rule.name,
                   "a failure policy rule name must start with an alphabetic character, optionally "
                   "followed by a string of alphanumeric characters or '_,:', and must end with an "
                   "alphanumeric character or '_'");
  }
  check_targets(jobset, rule.targets, Path(path, "targetReplicatedJobs"), " in failure policy",
                faults);
  const Path reasons(path, "onJobFailureReasons");
  for (size_t i = 0; i < rule.on_job_failure_reasons.size(); ++i) {
    const auto& reason = rule.on_job_failure_reasons[i];
    if (std::ranges::find(kFailureReasons, reason) == kFailureReasons.end()) {
      faults.unsupported(Path(reasons, i), reason, kFailureReasons);
    }
  }
  if (strict) return;  // a wrong pattern matches nothing
  const Path patterns(path, "onJobFailureMessagePatterns");
  for (size_t i = 0; i < rule.on_job_failure_message_patterns.size(); ++i) {
    const auto& expression = rule.on_job_failure_message_patterns[i];
    if (const auto pattern = Pattern::compile(expression); !pattern) {
      faults.invalid(Path(patterns, i), expression, pattern.error().message);
    }
  }
}

void check_failure_policy(const api::JobSet& jobset, bool strict, const Path& spec,
                          Faults& faults) {
  if (!jobset.spec.failure_policy) return;
  const auto& policy = *jobset.spec.failure_policy;
  const Path path(spec, "failurePolicy");
  if (policy.restart_strategy == api::RestartStrategy::InPlaceRestart) {
    faults.forbidden(Path(path, "restartStrategy"), "InPlaceRestart is not supported");
  }
  const Path rules(path, "rules");
  std::set<std::string_view> names;
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    const Path here(rules, i);
    const auto& name = policy.rules[i].name;
    if (!name.empty() && !names.insert(name).second) faults.duplicate(Path(here, "name"), name);
    check_rule(jobset, policy.rules[i], strict, here, faults);
    if (strict && restarts_alone(policy.rules[i].action)) {
      faults.forbidden(Path(here, "action"),
                       "RestartJob and RestartJobAndIgnoreMaxRestarts are not allowed with strict "
                       "compatibility: in the original they are behind a feature gate");
    }
  }
  if (!restarts_jobs_alone(jobset)) return;
  const Path list(spec, "replicatedJobs");
  for (size_t i = 0; i < jobset.spec.replicated_jobs.size(); ++i) {
    const auto replicas = jobset.spec.replicated_jobs[i].replicas;
    if (replicas <= kMostRestartingReplicas) continue;
    const Path here(list, i);
    faults.invalid(Path(here, "replicas"), std::to_string(replicas),
                   "JobSet cannot have a failure policy rule with RestartJob or "
                   "RestartJobAndIgnoreMaxRestarts action and a replicated job with replicas > "
                   "1024");
  }
}

void check_coordinator(const api::JobSet& jobset, const Path& spec, Faults& faults) {
  if (!jobset.spec.coordinator) return;
  const auto& coordinator = *jobset.spec.coordinator;
  const Path path(spec, "coordinator");
  const auto* replicated = jobset.find_replicated_job(coordinator.replicated_job);
  if (replicated == nullptr) {
    faults.invalid(
        Path(path, "replicatedJob"), coordinator.replicated_job,
        fmt::format("coordinator replicatedJob {} does not exist", coordinator.replicated_job));
  } else if (coordinator.job_index < 0 || coordinator.job_index >= replicated->replicas) {
    faults.invalid(Path(path, "jobIndex"), std::to_string(coordinator.job_index),
                   fmt::format("coordinator job index {} is invalid for replicatedJob {}",
                               coordinator.job_index, replicated->name));
  } else if (!replicated->is_indexed() || !replicated->completions()) {
    faults.invalid(Path(path, "replicatedJob"), coordinator.replicated_job,
                   "job for coordinator pod must be indexed completion mode, and completions "
                   "number must be set");
  } else if (coordinator.pod_index < 0 || coordinator.pod_index >= *replicated->completions()) {
    faults.invalid(
        Path(path, "podIndex"), std::to_string(coordinator.pod_index),
        fmt::format("coordinator pod index {} is invalid for replicatedJob {} job index {}",
                    coordinator.pod_index, coordinator.replicated_job, coordinator.job_index));
  }
  const std::string endpoint = coordinator_endpoint(jobset);
  const std::string why = why_not_label_value(endpoint);
  if (!why.empty()) {
    faults.invalid(path, endpoint,
                   fmt::format("spec will lead to invalid label value \"{}\" for coordinator label "
                               "\"{}\" (long JobSet / ReplicatedJob / SubDomain name?): {}",
                               endpoint, keys::kCoordinator, why));
  }
}

void check_claim_mounts(const api::JobSet& jobset, std::string_view claim, const Path& spec,
                        Faults& faults) {
  const Path list(spec, "replicatedJobs");
  bool mounted = false;
  for (size_t i = 0; i < jobset.spec.replicated_jobs.size(); ++i) {
    const Json* pod = jobset.spec.replicated_jobs[i].pod_spec();
    if (pod == nullptr) continue;
    mounted |= mounts_volume(*pod, claim);
    const Json* volumes = find(*pod, "volumes");
    if (volumes == nullptr || !volumes->is_array()) continue;
    for (const Json& volume : volumes->as_array()) {
      if (string_or(find(volume, "name")) != claim) continue;
      const Path here(list, i);
      faults.invalid(
          Path(here, "template.spec.template.spec.volumes"), std::string(claim),
          fmt::format("volume name conflicts with VolumeClaimPolicy template name: {}", claim));
    }
  }
  if (mounted) return;
  faults.invalid(list, std::string(claim),
                 fmt::format("replicatedJob containers don't have a matching volumeMount: {} from "
                             "VolumeClaimPolicies",
                             claim));
}

void check_claims(const api::JobSet& jobset, const Path& spec, Faults& faults) {
  const Path list(spec, "volumeClaimPolicies");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < jobset.spec.volume_claim_policies.size(); ++i) {
    const Path policy(list, i);
    const Path templates(policy, "templates");
    const auto& claims = jobset.spec.volume_claim_policies[i].templates;
    for (size_t k = 0; k < claims.size(); ++k) {
      const Path claim(templates, k);
      const Path metadata(claim, "metadata");
      const Path path(metadata, "name");
      const auto name = string_or(at(claims[k], "metadata", "name"));
      if (!seen.insert(name).second) {
        faults.invalid(path, std::string(name),
                       "names must be unique for VolumeClaimPolicies template");
      }
      const std::string why = why_not_dns1123_subdomain(name);
      if (!why.empty()) faults.invalid(path, std::string(name), why);
      if (claim_name(jobset.meta.name(), name).size() > kLongestLabel) {
        faults.invalid(path, std::string(name), "VolumeClaimPolicies template name is too long");
      }
      if (!string_or(at(claims[k], "metadata", "namespace")).empty()) {
        faults.forbidden(Path(metadata, "namespace"),
                         "namespace cannot be set for VolumeClaimPolicies templates");
      }
      check_claim_mounts(jobset, name, spec, faults);
    }
  }
}

std::vector<Cause> faults_of(const api::JobSet& jobset, bool strict) {
  Faults faults;
  const Path spec("spec");
  check_network(jobset, spec, faults);
  check_managed_by(jobset, spec, faults);
  check_replicated_jobs(jobset, strict, spec, faults);
  const Path success(spec, "successPolicy");
  check_targets(jobset, jobset.spec.success_policy.targets, Path(success, "targetReplicatedJobs"),
                "", faults);
  check_failure_policy(jobset, strict, spec, faults);
  check_coordinator(jobset, spec, faults);
  check_claims(jobset, spec, faults);
  return faults.causes();
}

}  // namespace

std::vector<Cause> validate(const api::JobSet& jobset) {
  return faults_of(jobset, false);
}

std::vector<Cause> validate_strictly(const api::JobSet& jobset) {
  return faults_of(jobset, true);
}

}  // namespace grapnel::jobset
