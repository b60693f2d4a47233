#include "local/builtin/workload/workload.h"

#include <algorithm>
#include <charconv>

namespace grapnel::local {
namespace {

std::string_view text_at(JsonView value, std::string_view key) {
  const auto found = value.find(key);
  return found ? found->as_string().value_or("") : "";
}

int64_t int_at(JsonView value, std::string_view key, int64_t otherwise) {
  const auto found = value.find(key);
  return found ? found->as_int().value_or(otherwise) : otherwise;
}

Json json_at(JsonView value, std::string_view key) {
  const auto found = value.find(key);
  return found ? found->to_json() : Json();
}

int64_t number_of(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

int64_t ReplicaSet::revision() const {
  return number_of(meta.annotations.get(kRevision));
}

bool ReplicaSet::operator==(const ReplicaSet& other) const {
  return meta == other.meta && replicas == other.replicas &&
         min_ready_seconds == other.min_ready_seconds && equal(selector, other.selector) &&
         equal(pod_template, other.pod_template) && equal(status, other.status);
}

bool Deployment::operator==(const Deployment& other) const {
  return meta == other.meta && replicas == other.replicas &&
         min_ready_seconds == other.min_ready_seconds && history_limit == other.history_limit &&
         progress_deadline_seconds == other.progress_deadline_seconds && paused == other.paused &&
         recreate == other.recreate && equal(max_surge, other.max_surge) &&
         equal(max_unavailable, other.max_unavailable) && equal(selector, other.selector) &&
         equal(pod_template, other.pod_template) && equal(status, other.status);
}

Result<ReplicaSet> decode_replica_set(JsonView object) {
  auto meta = kube::decode_meta(object, {.all_annotations = true});
  if (!meta) return fail(meta.error());
  ReplicaSet set{.meta = std::move(*meta)};
  if (const auto spec = object.find("spec")) {
    set.replicas = int_at(*spec, "replicas", 1);
    set.min_ready_seconds = int_at(*spec, "minReadySeconds", 0);
    set.selector = json_at(*spec, "selector");
    set.pod_template = json_at(*spec, "template");
  }
  set.status = json_at(object, "status");
  return set;
}

Result<Deployment> decode_deployment(JsonView object) {
  auto meta = kube::decode_meta(object, {.all_annotations = true});
  if (!meta) return fail(meta.error());
  Deployment deployment{.meta = std::move(*meta)};
  if (const auto spec = object.find("spec")) {
    deployment.replicas = int_at(*spec, "replicas", 1);
    deployment.min_ready_seconds = int_at(*spec, "minReadySeconds", 0);
    deployment.history_limit = int_at(*spec, "revisionHistoryLimit", 10);
    deployment.progress_deadline_seconds = int_at(*spec, "progressDeadlineSeconds", 600);
    if (const auto paused = spec->find("paused")) {
      deployment.paused = paused->as_bool().value_or(false);
    }
    if (const auto strategy = spec->find("strategy")) {
      deployment.recreate = text_at(*strategy, "type") == "Recreate";
      if (const auto rolling = strategy->find("rollingUpdate")) {
        deployment.max_surge = json_at(*rolling, "maxSurge");
        deployment.max_unavailable = json_at(*rolling, "maxUnavailable");
      }
    }
    deployment.selector = json_at(*spec, "selector");
    deployment.pod_template = json_at(*spec, "template");
  }
  deployment.status = json_at(object, "status");
  return deployment;
}

Result<WorkloadPod> decode_workload_pod(JsonView object) {
  static constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
  auto meta = kube::decode_meta(object, {.annotations = {kDeletionCost}, .all_labels = true});
  if (!meta) return fail(meta.error());
  WorkloadPod pod{.meta = std::move(*meta)};
  pod.deletion_cost = number_of(pod.meta.annotations.get(kDeletionCost));
  if (const auto spec = object.find("spec")) pod.assigned = !text_at(*spec, "nodeName").empty();
  const auto status = object.find("status");
  if (!status) return pod;
  pod.phase = text_at(*status, "phase");
  if (const auto conditions = status->find("conditions")) {
    conditions->for_each_element([&](size_t, JsonView condition) {
      if (text_at(condition, "type") == "Ready" && text_at(condition, "status") == "True") {
        pod.ready_since =
            parse_time(text_at(condition, "lastTransitionTime")).value_or(pod.meta.created);
      }
      return true;
    });
  }
  if (const auto containers = status->find("containerStatuses")) {
    containers->for_each_element([&](size_t, JsonView container) {
      pod.restarts += int_at(container, "restartCount", 0);
      return true;
    });
  }
  return pod;
}

}  // namespace grapnel::local
