#include "operators/jobset/job_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "operators/common/object.h"
#include "operators/jobset/children.h"
#include "operators/jobset/gang.h"
#include "operators/jobset/names.h"
#include "operators/jobset/volume_claims.h"

namespace grapnel::jobset {
namespace {

void merge_into(JsonObject& target, const JsonObject& more) {
  for (const auto& [key, value] : more) target[key] = value;
}

void merge_into(JsonObject& target, const Json* more) {
  if (more != nullptr && more->is_object()) merge_into(target, more->as_object());
}

JsonArray& ensure_array(JsonObject& parent, std::string_view key) {
  Json& value = parent[key];
  return value.is_array() ? value.as_array() : value.emplace_array();
}

void set_default(JsonObject& object, std::string_view key, std::string_view value) {
  Json& member = object[key];
  if (member.is_null() || string_or(&member, " ").empty()) member = value;
}

Ranks ranks_of(const api::JobSet& jobset, const api::ReplicatedJob& replicated) {
  Ranks ranks;
  bool before = true;
  for (const auto& other : jobset.spec.replicated_jobs) {
    if (other.name == replicated.name) before = false;
    const bool same_group = other.group_name == replicated.group_name;
    ranks.jobs_in_jobset += other.replicas;
    if (same_group) ranks.jobs_in_group += other.replicas;
    if (before) ranks.first_in_jobset += other.replicas;
    if (before && same_group) ranks.first_in_group += other.replicas;
  }
  return ranks;
}

JsonObject shared_labels(const api::JobSet& jobset, const api::ReplicatedJob& replicated,
                         const Ranks& ranks) {
  JsonObject labels{
      {keys::kJobSetName, jobset.meta.name()},
      {keys::kJobSetUid, jobset.meta.uid.text()},
      {keys::kReplicatedJobName, replicated.name},
      {keys::kRestartAttempt, std::to_string(jobset.status.restarts.value_or(0))},
      {keys::kReplicatedJobReplicas, std::to_string(replicated.replicas)},
      {keys::kGlobalReplicas, std::to_string(ranks.jobs_in_jobset)},
      {keys::kGroupName, replicated.group_name},
      {keys::kGroupReplicas, std::to_string(ranks.jobs_in_group)},
  };
  if (jobset.spec.coordinator) labels[keys::kCoordinator] = coordinator_endpoint(jobset);
  return labels;
}

// The annotations of the Job template win over those of the JobSet.
JsonObject placement_annotations(const api::JobSet& jobset, const api::ReplicatedJob& replicated) {
  JsonObject annotations;
  const auto& own = jobset.meta.annotations;
  if (own.has(keys::kExclusiveTopology)) {
    for (const auto key : {keys::kExclusiveTopology, keys::kNodeSelectorStrategy}) {
      if (own.has(key)) annotations[key] = own.get(key);
    }
  }
  const Json* of_template = at(replicated.job_template, "metadata", "annotations");
  if (of_template != nullptr && find(*of_template, keys::kExclusiveTopology) != nullptr) {
    for (const auto key : {keys::kExclusiveTopology, keys::kNodeSelectorStrategy}) {
      if (const Json* value = find(*of_template, key)) annotations[key] = *value;
    }
  }
  return annotations;
}

// The priority of most pods. Where it is another, or the pod is to be placed, admission sees to it.
void label_priority(JsonObject& metadata, const Json* pod_spec) {
  if (pod_spec != nullptr && find(*pod_spec, "priorityClassName") != nullptr) return;
  const JsonObject& annotations = ensure_object(metadata, "annotations");
  if (annotations.contains(keys::kExclusiveTopology) ||
      annotations.contains(keys::kNodeSelectorStrategy)) {
    return;
  }
  set_default(ensure_object(metadata, "labels"), keys::kPriority, "0");
}

}  // namespace

bool restarts_alone(api::FailureAction action) {
  using enum api::FailureAction;
  return action == RestartJob || action == RestartJobAndIgnoreMaxRestarts;
}

bool restarts_jobs_alone(const api::JobSet& jobset) {
  return jobset.spec.failure_policy &&
         std::ranges::any_of(jobset.spec.failure_policy->rules, restarts_alone,
                             &api::FailureRule::action);
}

JobBuilder::JobBuilder(const api::JobSet& jobset, const api::ReplicatedJob& replicated, bool strict)
    : jobset_(jobset),
      replicated_(replicated),
      strict_(strict),
      ranks_(ranks_of(jobset, replicated)),
      labels_(shared_labels(jobset, replicated, ranks_)),
      placement_(placement_annotations(jobset, replicated)) {
  JsonObject metadata = this->metadata();
  const auto& annotations = metadata["annotations"].as_object();
  selects_nodes_by_job_ = annotations.contains(keys::kExclusiveTopology) &&
                          annotations.contains(keys::kNodeSelectorStrategy);
  shared_ = {{"apiVersion", kube::kinds::kJob.api_version()},
             {"kind", kube::kinds::kJob.kind},
             {"metadata", std::move(metadata)},
             {"spec", spec()}};
}

JsonObject JobBuilder::metadata() const {
  JsonObject metadata{{"name", ""},
                      {"namespace", jobset_.meta.ns()},
                      {"labels", JsonObject()},
                      {"annotations", JsonObject()},
                      {"ownerReferences", operators::owned_by(jobset_)}};
  const Json& job = replicated_.job_template;
  merge_into(metadata["labels"].as_object(), at(job, "metadata", "labels"));
  merge_into(metadata["annotations"].as_object(), at(job, "metadata", "annotations"));
  merge_into(metadata["labels"].as_object(), labels_);
  merge_into(metadata["annotations"].as_object(), labels_);
  merge_into(metadata["annotations"].as_object(), placement_);
  return metadata;
}

JsonObject JobBuilder::spec() const {
  JsonObject spec;
  merge_into(spec, at(replicated_.job_template, "spec"));
  set_default(spec, "completionMode", "Indexed");
  spec["suspend"] = jobset_.is_suspended();

  JsonObject& pod = ensure_object(spec, "template");
  JsonObject& metadata = ensure_object(pod, "metadata");
  merge_into(ensure_object(metadata, "labels"), labels_);
  merge_into(ensure_object(metadata, "annotations"), labels_);
  merge_into(ensure_object(metadata, "annotations"), placement_);
  if (!strict_) label_priority(metadata, at(replicated_.job_template, "spec", "template", "spec"));

  JsonObject& pod_spec = ensure_object(pod, "spec");
  set_default(pod_spec, "restartPolicy", "OnFailure");
  if (jobset_.spec.network.enable_dns_hostnames) pod_spec["subdomain"] = subdomain(jobset_);
  if (selects_nodes_by_job_) {
    ensure_array(pod_spec, "tolerations")
        .push_back(JsonObject{
            {"key", keys::kNoSchedule}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
  }
  if (wants_gang(jobset_)) join_gang(jobset_, replicated_, pod);
  for (Json& volume : volumes_for(jobset_, pod_spec)) {
    ensure_array(pod_spec, "volumes").push_back(std::move(volume));
  }
  return spec;
}

Json JobBuilder::build(int32_t index) const {
  JsonObject job = shared_;
  const std::string name = job_name(jobset_.meta.name(), replicated_.name, index);
  const JsonObject labels = labels_of(index, name);
  JsonObject& metadata = job["metadata"].as_object();
  JsonObject& pod = job["spec"].as_object()["template"].as_object();
  metadata["name"] = name;
  for (JsonObject* carrier : {&metadata, &pod["metadata"].as_object()}) {
    merge_into((*carrier)["labels"].as_object(), labels);
    merge_into((*carrier)["annotations"].as_object(), labels);
  }
  select_nodes(pod["spec"].as_object(), name);
  return job;
}

JsonObject JobBuilder::scheduling(int32_t index) const {
  JsonObject scheduling;
  const Json& pod_spec = *at(shared_.at("spec"), "template", "spec");
  for (const auto key : api::kSchedulingFields) {
    if (const Json* value = find(pod_spec, key)) scheduling[key] = *value;
  }
  select_nodes(scheduling, job_name(jobset_.meta.name(), replicated_.name, index));
  return scheduling;
}

void JobBuilder::select_nodes(JsonObject& pod_spec, std::string_view job_name) const {
  if (!selects_nodes_by_job_) return;
  // A '/' is not allowed in a label's value.
  ensure_object(pod_spec, "nodeSelector")[keys::kNamespacedJob] =
      fmt::format("{}_{}", jobset_.meta.ns(), job_name);
}

JsonObject JobBuilder::labels_of(int32_t index, std::string_view job_name) const {
  JsonObject labels{{keys::kJobIndex, std::to_string(index)},
                    {keys::kJobKey, job_key(jobset_.meta.ns(), job_name)},
                    {keys::kJobGlobalIndex, std::to_string(ranks_.first_in_jobset + index)},
                    {keys::kJobGroupIndex, std::to_string(ranks_.first_in_group + index)}};
  if (restarts_jobs_alone(jobset_) && !strict_) {
    labels[keys::kJobRestartAttempt] =
        std::to_string(job_restarts(jobset_, replicated_.name, index));
  }
  return labels;
}

}  // namespace grapnel::jobset
