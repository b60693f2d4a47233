#include "tests/simulation/jobset_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace grapnel::simulation {
namespace {

namespace kinds = kube::kinds;
constexpr int kNodes = 4;
constexpr Duration kSeenWithin = seconds(40);
constexpr std::string_view kIndex = "batch.kubernetes.io/job-completion-index";

JsonObject condition(std::string_view type, std::string_view reason,
                     std::string_view status = "True") {
  return {{"type", type},
          {"status", status},
          {"reason", reason},
          {"message", "simulated"},
          {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
}

// As whoever did it last would see it: a status that says nothing new is not written.
bool set_status(Server& server, std::string_view who, const kube::Kind& kind, const Json& object,
                const JsonObject& status) {
  const Json* before = find(object, "status");
  const bool is_new = std::ranges::any_of(status, [&](const auto& member) {
    const Json* old = before == nullptr ? nullptr : find(*before, member.key());
    if (old != nullptr) return !equal(*old, member.value());
    return !member.value().is_null() && !equal(member.value(), 0);  // the server leaves out zeros
  });
  if (is_new) {
    server.ask(who, "PATCH", path_of(kind, object) + "/status", JsonObject{{"status", status}});
  }
  return is_new;
}

std::string_view phase(const Json& pod) {
  return string_or(at(pod, "status", "phase"), "Pending");
}

std::string_view node_of(const Json& pod) {
  return string_or(at(pod, "spec", "nodeName"));
}

std::string_view controller_of(const Json& object) {
  const Json* owners = at(object, "metadata", "ownerReferences");
  return owners == nullptr ? "" : string_or(find(owners->get_array()[0], "uid"));
}

// Each of them once, from anywhere on, until one has done something.
template <class Step>
bool one_of(const std::vector<const Json*>& all, Random& random, const Step& step) {
  const size_t first = random.below(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (step(*all[(first + i) % all.size()])) return true;
  }
  return false;
}

}  // namespace

bool has_ended(const Json& pod) {
  return phase(pod) == "Succeeded" || phase(pod) == "Failed";
}

bool is_true(const Json& object, std::string_view type) {
  const Json* list = at(object, "status", "conditions");
  return list != nullptr && list->is_array() &&
         std::ranges::any_of(list->get_array(), [&](const Json& c) {
           return string_or(find(c, "type")) == type && string_or(find(c, "status")) == "True";
         });
}

// ---- nodes --------------------------------------------------------------------------------------

void JobSetCluster::make_nodes(Server& server) {
  if (std::exchange(has_nodes_, true)) return;
  for (int i = 0; i < kNodes; ++i) {
    server.ask("node", "POST", collection_of(kinds::kNode, ""),
               JsonObject{{"metadata", JsonObject{{"name", fmt::format("n{}", i)}}}});
  }
  recover_nodes(server);
}

void JobSetCluster::lose_node(Server& server, Random& random, Time now) {
  make_nodes(server);
  const Duration seen_after = milliseconds(random.below(kSeenWithin / milliseconds(1)));
  lost_.try_emplace(fmt::format("n{}", random.below(kNodes)), Lost{.seen_at = now + seen_after});
}

void JobSetCluster::see_lost_nodes(Server& server, Time now) {
  for (auto& [name, lost] : lost_) {
    if (lost.is_seen || now < lost.seen_at) continue;
    lost.is_seen = true;
    const Json node = *server.find(kinds::kNode, {Interned(), name});
    const JsonArray unknown{condition("Ready", "NodeStatusUnknown", "Unknown")};
    set_status(server, "node-controller", kinds::kNode, node, {{"conditions", unknown}});
    for (const Json* pod : server.all(kinds::kPod)) {
      if (node_of(*pod) != name || !is_true(*pod, "Ready")) continue;
      const JsonArray conditions{condition("Ready", "NodeNotReady", "False")};
      set_status(server, "node-controller", kinds::kPod, *pod, {{"conditions", conditions}});
    }
  }
}

void JobSetCluster::recover_nodes(Server& server) {
  lost_.clear();
  for (const Json* node : server.all(kinds::kNode)) {
    set_status(server, "kubelet", kinds::kNode, *node,
               {{"conditions", JsonArray{condition("Ready", "KubeletReady")}}});
  }
}

// ---- steps --------------------------------------------------------------------------------------

std::optional<Duration> JobSetCluster::step(Server& server, Random& random, Time now,
                                            double failures) {
  make_nodes(server);
  see_lost_nodes(server, now);
  bool did = one_of(server.all(kinds::kPod), random,
                    [&](const Json& pod) { return step_pod(server, random, pod, failures); });
  std::map<std::string_view, std::vector<const Json*>> pods;
  for (const Json* pod : server.all(kinds::kPod)) pods[controller_of(*pod)].push_back(pod);
  did |= one_of(server.all(kinds::kJob), random, [&](const Json& job) {
    return step_job(server, random, job, pods[meta_text(job, "uid")], now);
  });
  if (did) return Duration::zero();
  std::optional<Duration> next;
  for (const auto& [name, lost] : lost_) {
    if (!lost.is_seen) next = std::min(next.value_or(lost.seen_at - now), lost.seen_at - now);
  }
  return next;
}

bool JobSetCluster::step_pod(Server& server, Random& random, const Json& pod, double failures) {
  const auto node = node_of(pod);
  if (node.empty()) {
    if (is_going(pod)) return false;  // nobody waits for it; finalizers are others'
    const JsonObject to{
        {"apiVersion", "v1"}, {"kind", "Node"}, {"name", fmt::format("n{}", random.below(kNodes))}};
    server.ask("scheduler", "POST", path_of(kinds::kPod, pod) + "/binding",
               JsonObject{{"apiVersion", "v1"},
                          {"kind", "Binding"},
                          {"metadata", JsonObject{{"name", meta_text(pod, "name")}}},
                          {"target", to}});
    return true;
  }
  if (is_lost(node)) return false;  // its kubelet says and does nothing
  if (is_going(pod)) {
    server.finish_deletion(kinds::kPod, pod);
    return true;
  }
  if (has_ended(pod)) return false;
  if (phase(pod) == "Pending" || !is_true(pod, "Ready")) {
    const JsonArray ready{condition("Ready", "PodReady")};
    return set_status(server, "kubelet", kinds::kPod, pod,
                      {{"phase", "Running"}, {"conditions", ready}});
  }
  if (random.chance(0.3)) {
    const bool fails = random.chance(failures);
    set_status(server, "kubelet", kinds::kPod, pod,
               {{"phase", fails ? "Failed" : "Succeeded"}, {"conditions", nullptr}});
  }
  return true;  // it runs on
}

bool JobSetCluster::step_job(Server& server, Random& random, const Json& job,
                             const std::vector<const Json*>& pods, Time now) {
  // What is in foreground deletion is the garbage collector's.
  if (is_going(job) || is_true(job, "Complete") || is_true(job, "Failed")) return false;
  const bool failing = is_true(job, "FailureTarget");
  if (!failing && !bool_or(at(job, "spec", "suspend"))) {
    return run_job(server, random, job, pods, now);
  }
  bool waits = false;
  for (const Json* pod : pods) {
    if (has_ended(*pod)) continue;
    waits = true;
    if (is_going(*pod)) continue;
    server.ask("job-controller", "DELETE", path_of(kinds::kPod, *pod));
    return true;  // the list has changed
  }
  if (!failing) {
    if (int_or(at(job, "status", "active")) == 0) return false;
    return set_status(server, "job-controller", kinds::kJob, job, {{"active", 0}, {"ready", 0}});
  }
  if (waits) return false;
  const JsonArray conditions{condition("FailureTarget", "BackoffLimitExceeded"),
                             condition("Failed", "BackoffLimitExceeded")};
  return set_status(server, "job-controller", kinds::kJob, job,
                    {{"active", 0}, {"ready", 0}, {"conditions", conditions}});
}

void JobSetCluster::tell_refusal(Server& server, const Json& job, Time now) {
  const auto ns = meta_text(job, "namespace");
  const auto name = fmt::format("{}.{}", meta_text(job, "name"), ++pods_made_);
  server.ask("job-controller", "POST", collection_of(kinds::kEvent, ns),
             JsonObject{{"apiVersion", kinds::kEvent.api_version()},
                        {"kind", kinds::kEvent.kind},
                        {"metadata", JsonObject{{"name", name}, {"namespace", ns}}},
                        {"eventTime", format_micro_time(now)},
                        {"reportingController", "job-controller"},
                        {"reportingInstance", "job-controller"},
                        {"action", "Create"},
                        {"reason", "FailedCreate"},
                        {"regarding", JsonObject{{"apiVersion", "batch/v1"},
                                                 {"kind", "Job"},
                                                 {"namespace", ns},
                                                 {"name", meta_text(job, "name")},
                                                 {"uid", meta_text(job, "uid")}}},
                        {"note", "exceeded quota"},
                        {"type", "Warning"}});
}

bool JobSetCluster::run_job(Server& server, Random& random, const Json& job,
                            const std::vector<const Json*>& pods, Time now) {
  const int64_t completions = int_or(at(job, "spec", "completions"), 1);
  const int64_t limit = int_or(at(job, "spec", "backoffLimit"), 6);
  std::set<std::string, std::less<>> taken;
  int64_t failed = 0;
  int64_t succeeded = 0;
  int64_t ready = 0;
  for (const Json* pod : pods) {
    if (phase(*pod) == "Failed") {
      ++failed;
      continue;
    }
    taken.emplace(label(*pod, kIndex));
    if (phase(*pod) == "Succeeded") ++succeeded;
    if (phase(*pod) == "Running" && !is_going(*pod) && is_true(*pod, "Ready")) ++ready;
  }
  bool did = false;
  JsonObject status{{"active", static_cast<int64_t>(taken.size()) - succeeded},
                    {"ready", ready},
                    {"succeeded", succeeded},
                    {"failed", failed},
                    {"startTime", "2026-01-01T00:00:00Z"}};
  if (failed > limit) {
    status["conditions"] = JsonArray{condition("FailureTarget", "BackoffLimitExceeded")};
  } else if (succeeded >= completions) {
    status["active"] = 0;
    status["completionTime"] = "2026-01-01T00:00:00Z";
    status["conditions"] = JsonArray{condition("SuccessCriteriaMet", "CompletionsReached"),
                                     condition("Complete", "CompletionsReached")};
  } else {
    for (int64_t i = 0; i < completions; ++i) {
      if (taken.contains(std::to_string(i))) continue;
      did = true;
      if (!random.chance(0.7)) continue;
      if (random.chance(refusals_)) {
        tell_refusal(server, job, now);
        continue;
      }
      JsonObject labels = at(job, "spec", "template", "metadata", "labels")->get_object();
      labels[kIndex] = std::to_string(i);
      const JsonObject owner{
          {"apiVersion", "batch/v1"},     {"kind", "Job"},      {"name", meta_text(job, "name")},
          {"uid", meta_text(job, "uid")}, {"controller", true}, {"blockOwnerDeletion", true}};
      const std::string name = fmt::format("{}-{}-{}", meta_text(job, "name"), i, ++pods_made_);
      server.ask("job-controller", "POST", collection_of(kinds::kPod, meta_text(job, "namespace")),
                 JsonObject{{"apiVersion", "v1"},
                            {"kind", "Pod"},
                            {"metadata", JsonObject{{"name", name},
                                                    {"labels", std::move(labels)},
                                                    {"ownerReferences", JsonArray{owner}}}},
                            {"spec", *at(job, "spec", "template", "spec")}});
    }
  }
  return set_status(server, "job-controller", kinds::kJob, job, status) || did;
}

}  // namespace grapnel::simulation
