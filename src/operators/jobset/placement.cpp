#include "operators/jobset/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "operators/common/object.h"
#include "operators/jobset/names.h"

namespace grapnel::jobset {
namespace {

using operators::ref_to;

// A node may be known to the scheduler before it is to us.
constexpr Duration kNodeComesLater = seconds(5);
constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";

std::string_view annotation(const Json& pod, std::string_view key) {
  return string_or(at(pod, "metadata", "annotations", key));
}

bool is_annotated(const Json& pod, std::string_view key) {
  return at(pod, "metadata", "annotations", key) != nullptr;
}

JsonArray& list_in(JsonObject& parent, std::string_view key) {
  Json& value = parent[key];
  return value.is_array() ? value.as_array() : value.emplace_array();
}

JsonObject requirement(std::string_view key, std::string_view op, std::string_view value = "") {
  JsonObject expression{{"key", key}, {"operator", op}};
  if (op == "In" || op == "NotIn") expression["values"] = JsonArray{value};
  return expression;
}

// In all namespaces: the domain is exclusive among all JobSets.
JsonObject affinity_term(JsonArray expressions, std::string_view topology) {
  return {{"labelSelector", JsonObject{{"matchExpressions", std::move(expressions)}}},
          {"topologyKey", topology},
          {"namespaceSelector", JsonObject()}};
}

void add_affinities(JsonObject& pod) {
  const Json whole = pod;
  const auto topology = annotation(whole, keys::kExclusiveTopology);
  const auto job = string_or(at(whole, "metadata", "labels", keys::kJobKey));
  const auto priority = string_or(at(whole, "metadata", "labels", keys::kPriority));
  JsonObject& affinity = ensure_object(ensure_object(pod, "spec"), "affinity");
  constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  list_in(ensure_object(affinity, "podAffinity"), kRequired)
      .push_back(affinity_term({requirement(keys::kJobKey, "In", job)}, topology));
  list_in(ensure_object(affinity, "podAntiAffinity"), kRequired)
      .push_back(affinity_term(
          {requirement(keys::kJobKey, "Exists"), requirement(keys::kJobKey, "NotIn", job),
           requirement(keys::kPriority, "In", priority)},
          topology));
}

bool is_leader(const api::Pod& pod) {
  return pod.meta.labels.get(kCompletionIndex) == "0" ||
         pod.meta.annotations.get(kCompletionIndex) == "0";
}

bool waits_for_leader(const api::Pod& pod) {
  return std::ranges::find(pod.gates, kFollowerGate, &Interned::view) != pod.gates.end();
}

// The pods of one Job.
struct Group {
  std::vector<const api::Pod*> leaders;
  std::vector<const api::Pod*> followers;
};

// The leader whose node decides. One that is ending decides nothing: its replacement will, and is
// on its way. One that has ended still does where there is no other, or its followers would wait
// for ever; should a replacement come, its affinity brings it to where they are.
const api::Pod* deciding_leader(const Group& group) {
  const api::Pod* ended = nullptr;
  for (const api::Pod* leader : group.leaders) {
    if (leader->meta.is_being_deleted()) continue;
    if (!leader->is_finished()) return leader;
    if (ended == nullptr || ended->meta.created < leader->meta.created) ended = leader;
  }
  return ended;
}

std::string_view domain_of(const api::Pod& pod, std::string_view topology,
                           const FindNode& find_node) {
  const api::Node* node = find_node(pod.node);
  return node == nullptr ? "" : node->meta.labels.get(topology);
}

runtime::Patch let_go(const api::Pod& pod, std::string_view topology, std::string_view domain) {
  const JsonObject gone{{"$patch", "delete"}, {"name", kFollowerGate}};
  return {.target = ref_to(pod),
          .type = runtime::Patch::Type::kStrategic,
          .body = JsonObject{{"spec", JsonObject{{"nodeSelector", JsonObject{{topology, domain}}},
                                                 {"schedulingGates", JsonArray{gone}}}}},
          .subresource = ""};
}

// So that a podFailurePolicy can tell this deletion from a failure.
runtime::Patch mark_disrupted(const api::Pod& pod, Time now) {
  const JsonObject condition{{"type", "DisruptionTarget"},
                             {"status", "True"},
                             {"reason", "ExclusivePlacementViolation"},
                             {"message", "Pod violated JobSet exclusive placement policy"},
                             {"lastTransitionTime", format_time(now)}};
  return {.target = ref_to(pod),
          .type = runtime::Patch::Type::kStrategic,
          .body = JsonObject{{"status", JsonObject{{"conditions", JsonArray{condition}}}}},
          .subresource = "status"};
}

struct Fixes {
  std::vector<runtime::Write> first;
  std::vector<runtime::Write> then;
  bool node_unknown = false;
};

void place(const Group& group, const FindNode& find_node, Time now, Fixes& fixes) {
  const api::Pod* leader = deciding_leader(group);
  if (leader == nullptr) return;
  const auto topology = leader->meta.annotations.get(keys::kExclusiveTopology);
  if (leader->node.empty()) return;
  const auto domain = domain_of(*leader, topology, find_node);
  if (domain.empty()) {
    fixes.node_unknown = true;
    return;
  }
  for (const api::Pod* pod : group.followers) {
    if (pod->meta.is_being_deleted() || pod->is_finished()) continue;
    if (waits_for_leader(*pod)) {
      fixes.first.push_back(let_go(*pod, topology, domain));
    } else if (pod->node_selector.get(topology) != domain && !leader->is_finished()) {
      if (pod->condition("DisruptionTarget") == nullptr) {
        fixes.first.push_back(mark_disrupted(*pod, now));
      }
      fixes.then.push_back(runtime::Delete{.target = ref_to(*pod), .grace_seconds = std::nullopt});
    }
  }
}

}  // namespace

Json admitted_pod(Json pod) {
  if (!pod.is_object() || !is_annotated(pod, keys::kJobSetName) ||
      is_annotated(pod, keys::kNodeSelectorStrategy)) {
    return pod;
  }
  JsonObject& object = pod.as_object();
  if (const Json* priority = at(pod, "spec", "priority"); priority && priority->is_int64()) {
    ensure_object(ensure_object(object, "metadata"), "labels")[keys::kPriority] =
        std::to_string(priority->as_int64());
  }
  if (!is_annotated(pod, keys::kExclusiveTopology)) return pod;
  const auto index = annotation(pod, kCompletionIndex);
  if (index.empty() || index == "0") {  // pods without an index have no leader to follow
    add_affinities(object);
  } else {
    list_in(ensure_object(object, "spec"), "schedulingGates")
        .push_back(JsonObject{{"name", kFollowerGate}});
  }
  return pod;
}

std::string needs_admission_expression() {
  return fmt::format(
      "!(has(object.metadata.annotations) && '{2}' in object.metadata.annotations) && ("
      "has(object.metadata.annotations) && '{0}' in object.metadata.annotations || "
      "!has(object.spec.priority) || !('{1}' in object.metadata.labels) || "
      "object.metadata.labels['{1}'] != string(object.spec.priority))",
      keys::kExclusiveTopology, keys::kPriority, keys::kNodeSelectorStrategy);
}

runtime::Plan place_followers(const std::vector<const api::Pod*>& pods, const FindNode& find_node,
                              Time now) {
  std::map<std::string, Group> groups;  // by the Job's name and uid: in the same order every time
  for (const api::Pod* pod : pods) {
    const auto* owner = pod->meta.controller();
    const auto& annotations = pod->meta.annotations;
    if (owner == nullptr || !annotations.has(keys::kExclusiveTopology) ||
        annotations.has(keys::kNodeSelectorStrategy)) {
      continue;
    }
    Group& group = groups[owner->name + "/" + owner->uid.text()];
    (is_leader(*pod) ? group.leaders : group.followers).push_back(pod);
  }
  Fixes fixes;
  for (const auto& [job, group] : groups) place(group, find_node, now, fixes);
  runtime::Plan plan;
  for (auto& write : fixes.first) plan.add(std::move(write));
  plan.then();
  for (auto& write : fixes.then) plan.add(std::move(write));
  if (fixes.node_unknown) plan.look_again_in(kNodeComesLater);
  return plan;
}

bool concerns_planner(const api::Pod& pod) {
  return pod.meta.is_being_deleted() || pod.meta.annotations.has(keys::kExclusiveTopology);
}

Result<api::Pod> decode_child_pod(JsonView object) {
  return api::decode_pod(object, {.annotations = {keys::kExclusiveTopology,
                                                  keys::kNodeSelectorStrategy, kCompletionIndex},
                                  .all_labels = false,
                                  .labels = {keys::kJobSetName, kCompletionIndex}});
}

}  // namespace grapnel::jobset
