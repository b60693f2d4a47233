// ReplicaSets, Deployments and their pods, as their controllers read them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "document/json.h"
#include "document/json_view.h"
#include "kube/meta.h"

namespace grapnel::local {

inline constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kDesiredReplicas = "deployment.kubernetes.io/desired-replicas";
inline constexpr std::string_view kMaxReplicas = "deployment.kubernetes.io/max-replicas";
inline constexpr std::string_view kTemplateHash = "pod-template-hash";

struct ReplicaSet {
  kube::Meta meta;
  int64_t replicas = 1;
  int64_t min_ready_seconds = 0;
  Json selector;
  Json pod_template;
  Json status;

  int64_t count(std::string_view field) const { return int_or(find(status, field)); }
  int64_t revision() const;
  bool operator==(const ReplicaSet& other) const;
};

struct WorkloadPod {
  kube::Meta meta;
  std::string phase;
  bool assigned = false;
  std::optional<Time> ready_since;
  int64_t restarts = 0;
  int64_t deletion_cost = 0;

  bool is_active() const {
    return phase != "Succeeded" && phase != "Failed" && !meta.is_being_deleted();
  }
  bool operator==(const WorkloadPod&) const = default;
};

struct Deployment {
  kube::Meta meta;
  int64_t replicas = 1;
  int64_t min_ready_seconds = 0;
  int64_t history_limit = 10;
  int64_t progress_deadline_seconds = 600;
  bool paused = false;
  bool recreate = false;
  // As the spec says them: a number, or a percentage as text.
  Json max_surge;
  Json max_unavailable;
  Json selector;
  Json pod_template;
  Json status;

  bool operator==(const Deployment& other) const;
};

Result<ReplicaSet> decode_replica_set(JsonView object);
Result<WorkloadPod> decode_workload_pod(JsonView object);
Result<Deployment> decode_deployment(JsonView object);

}  // namespace grapnel::local
