#include "tests/simulation/jobset_cluster.h"

#include <fmt/format.h>

#include <algorithm>

namespace grapnel::simulation {
namespace {

namespace kinds = kube::kinds;
constexpr int kNodes = 4;
constexpr std::string_view kIndex = "batch.kubernetes.io/job-completion-index";

std::string_view meta_text(const Json& object, std::string_view name) {
  return string_or(at(object, "metadata", name));
}

std::string_view label(const Json& object, std::string_view key) {
  return string_or(at(object, "metadata", "labels", key));
}

bool is_going(const Json& object) {
  return at(object, "metadata", "deletionTimestamp") != nullptr;
}

std::string path_of(const kube::Kind& kind, const Json& object) {
  const auto ns = meta_text(object, "namespace");
  return fmt::format("{}/{}{}/{}", kind.api_path(),
                     ns.empty() ? "" : fmt::format("namespaces/{}/", ns), kind.plural,
                     meta_text(object, "name"));
}

void ask(ApiModel& model, std::string_view who, std::string method, std::string target,
         const Json& body) {
  model.handle({.method = std::move(method),
                .target = std::move(target),
                .headers = {{"Content-Type", "application/merge-patch+json"}},
                .body = to_text(body)},
               std::string(who));
}

void set_status(ApiModel& model, const kube::Kind& kind, const Json& object, JsonObject status,
                std::string_view who) {
  ask(model, who, "PATCH", path_of(kind, object) + "/status",
      JsonObject{{"status", std::move(status)}});
}

JsonObject true_condition(std::string_view type, std::string_view reason) {
  return {{"type", type},
          {"status", "True"},
          {"reason", reason},
          {"message", "simulated"},
          {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
}

std::string_view phase(const Json& pod) {
  return string_or(at(pod, "status", "phase"), "Pending");
}

bool has_ended(const Json& pod) {
  return phase(pod) == "Succeeded" || phase(pod) == "Failed";
}

}  // namespace

bool is_true(const Json& object, std::string_view condition) {
  const Json* list = at(object, "status", "conditions");
  return list != nullptr && list->is_array() &&
         std::ranges::any_of(list->get_array(), [&](const Json& c) {
           return string_or(find(c, "type")) == condition && string_or(find(c, "status")) == "True";
         });
}

std::vector<const Json*> pods_of(const ApiModel& model, std::string_view uid) {
  std::vector<const Json*> out;
  for (const Json* pod : model.all(kinds::kPod)) {
    const Json* owners = at(*pod, "metadata", "ownerReferences");
    if (owners != nullptr && string_or(find(owners->get_array()[0], "uid")) == uid) {
      out.push_back(pod);
    }
  }
  return out;
}

void JobSetCluster::make_nodes(ApiModel& model) {
  if (has_nodes_) return;
  has_nodes_ = true;
  for (int i = 0; i < kNodes; ++i) {
    ask(model, "node", "POST", "/api/v1/nodes",
        JsonObject{{"metadata", JsonObject{{"name", fmt::format("n{}", i)}}}});
  }
  recover_nodes(model);
}

void JobSetCluster::lose_node(ApiModel& model, Random& random) {
  make_nodes(model);
  const std::string name = fmt::format("n{}", random.below(kNodes));
  lost_.insert(name);
  const Json* node = model.find(kinds::kNode, {Interned(), name});
  JsonObject ready = true_condition("Ready", "NodeStatusUnknown");
  ready["status"] = "Unknown";
  set_status(model, kinds::kNode, *node, {{"conditions", JsonArray{ready}}}, "node-controller");
}

void JobSetCluster::recover_nodes(ApiModel& model) {
  lost_.clear();
  for (int i = 0; i < kNodes; ++i) {
    const Json* node = model.find(kinds::kNode, {Interned(), fmt::format("n{}", i)});
    if (node == nullptr || is_true(*node, "Ready")) continue;
    set_status(model, kinds::kNode, *node,
               {{"conditions", JsonArray{true_condition("Ready", "KubeletReady")}}}, "kubelet");
  }
}

// One pod and one Job at most, chosen by chance.
void JobSetCluster::step(ApiModel& model, Random& random, double failures) {
  make_nodes(model);
  if (const auto pods = model.all(kinds::kPod); !pods.empty()) {
    const Json pod = *pods[random.below(pods.size())];
    step_pod(model, random, pod, failures);
  }
  if (const auto jobs = model.all(kinds::kJob); !jobs.empty()) {
    const Json job = *jobs[random.below(jobs.size())];
    step_job(model, random, job);
  }
}

void JobSetCluster::step_pod(ApiModel& model, Random& random, const Json& pod, double failures) {
  const auto node = string_or(at(pod, "spec", "nodeName"));
  if (node.empty()) {
    if (is_going(pod)) {
      model.finish_deletion(kinds::kPod, {Interned(meta_text(pod, "namespace")),
                                          std::string(meta_text(pod, "name"))});
      return;
    }
    ask(model, "scheduler", "PATCH", path_of(kinds::kPod, pod),
        JsonObject{{"spec", JsonObject{{"nodeName", fmt::format("n{}", random.below(kNodes))}}}});
    return;
  }
  if (is_lost(node)) return;  // its kubelet says and does nothing
  if (is_going(pod)) {
    model.finish_deletion(
        kinds::kPod, {Interned(meta_text(pod, "namespace")), std::string(meta_text(pod, "name"))});
  } else if (phase(pod) == "Pending") {
    set_status(
        model, kinds::kPod, pod,
        {{"phase", "Running"}, {"conditions", JsonArray{true_condition("Ready", "PodReady")}}},
        "kubelet");
  } else if (phase(pod) == "Running" && random.chance(0.3)) {
    const bool fails = random.chance(failures);
    set_status(model, kinds::kPod, pod,
               {{"phase", fails ? "Failed" : "Succeeded"}, {"conditions", nullptr}}, "kubelet");
  }
}

void JobSetCluster::step_job(ApiModel& model, Random& random, const Json& job) {
  // What is in foreground deletion is the garbage collector's.
  if (is_going(job) || is_true(job, "Complete") || is_true(job, "Failed")) return;
  const auto pods = pods_of(model, meta_text(job, "uid"));
  const bool failing = is_true(job, "FailureTarget");
  if (!failing && !bool_or(at(job, "spec", "suspend"))) return run_job(model, random, job);
  bool waits = false;
  for (const Json* pod : pods) {
    if (has_ended(*pod)) continue;
    waits = true;
    if (!is_going(*pod)) {
      const std::string path = path_of(kinds::kPod, *pod);
      ask(model, "job-controller", "DELETE", path, JsonObject());
      return;  // the list has changed
    }
  }
  if (failing && !waits) {
    const JsonArray conditions{true_condition("FailureTarget", "BackoffLimitExceeded"),
                               true_condition("Failed", "BackoffLimitExceeded")};
    set_status(model, kinds::kJob, job, {{"active", 0}, {"ready", 0}, {"conditions", conditions}},
               "job-controller");
  } else if (!failing && (int_or(at(job, "status", "active")) != 0)) {
    set_status(model, kinds::kJob, job, {{"active", 0}, {"ready", 0}}, "job-controller");
  }
}

void JobSetCluster::run_job(ApiModel& model, Random& random, const Json& job) {
  const int64_t completions = int_or(at(job, "spec", "completions"), 1);
  const int64_t limit = int_or(at(job, "spec", "backoffLimit"), 0);
  int64_t failed = 0;
  int64_t succeeded = 0;
  int64_t ready = 0;
  std::set<std::string> taken;
  for (const Json* pod : pods_of(model, meta_text(job, "uid"))) {
    if (phase(*pod) == "Failed") {
      ++failed;
      continue;
    }
    taken.insert(std::string(label(*pod, kIndex)));
    if (phase(*pod) == "Succeeded") ++succeeded;
    if (phase(*pod) == "Running" && !is_going(*pod)) ++ready;
  }
  JsonObject status{{"active", static_cast<int64_t>(taken.size()) - succeeded},
                    {"ready", ready},
                    {"succeeded", succeeded},
                    {"failed", failed},
                    {"startTime", "2026-01-01T00:00:00Z"}};
  if (failed > limit) {
    status["conditions"] = JsonArray{true_condition("FailureTarget", "BackoffLimitExceeded")};
  } else if (succeeded >= completions) {
    status["active"] = 0;
    status["conditions"] = JsonArray{true_condition("SuccessCriteriaMet", "CompletionsReached"),
                                     true_condition("Complete", "CompletionsReached")};
  } else {
    for (int64_t i = 0; i < completions; ++i) {
      if (taken.contains(std::to_string(i)) || !random.chance(0.7)) continue;
      JsonObject labels = at(job, "spec", "template", "metadata", "labels")->get_object();
      labels[kIndex] = std::to_string(i);
      const JsonObject owner{
          {"apiVersion", "batch/v1"},     {"kind", "Job"},      {"name", meta_text(job, "name")},
          {"uid", meta_text(job, "uid")}, {"controller", true}, {"blockOwnerDeletion", true}};
      ask(model, "job-controller", "POST",
          fmt::format("/api/v1/namespaces/{}/pods", meta_text(job, "namespace")),
          JsonObject{
              {"metadata", JsonObject{{"name", fmt::format("{}-{}-{}", meta_text(job, "name"), i,
                                                           ++pods_made_)},
                                      {"labels", std::move(labels)},
                                      {"ownerReferences", JsonArray{owner}}}},
              {"spec", JsonObject()}});
    }
  }
  set_status(model, kinds::kJob, job, std::move(status), "job-controller");
}

}  // namespace grapnel::simulation
