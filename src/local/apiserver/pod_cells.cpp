#include "local/apiserver/pod_cells.h"

#include <fmt/format.h>

#include <algorithm>

#include "local/apiserver/metadata.h"

namespace grapnel::local {
namespace {

const JsonArray& list_at(const Json& object, const char* part, const char* key) {
  static const JsonArray kNone;
  const Json* list = at(object, part, key);
  return list != nullptr && list->is_array() ? list->as_array() : kNone;
}

bool is_sidecar(const Json& pod, std::string_view name) {
  const JsonArray& containers = list_at(pod, "spec", "initContainers");
  return std::any_of(containers.begin(), containers.end(), [name](const Json& one) {
    return string_or(find(one, "name")) == name &&
           string_or(find(one, "restartPolicy")) == "Always";
  });
}

// What the rows are made of, gathered over the containers.
struct Summary {
  std::string reason;
  size_t ready = 0;
  size_t total = 0;
  int64_t restarts = 0;
  std::string last_restart;  // RFC 3339 sorts by time

  void count_restarts(const Json& status) {
    restarts += int_or(find(status, "restartCount"));
    const std::string_view ended = string_or(at(status, "lastState", "terminated", "finishedAt"));
    if (ended > last_restart) last_restart = ended;
  }
};

std::string exit_text(const Json& terminated) {
  if (const std::string_view reason = string_or(find(terminated, "reason")); !reason.empty()) {
    return std::string(reason);
  }
  if (const int64_t signal = int_or(find(terminated, "signal")); signal != 0) {
    return fmt::format("Signal:{}", signal);
  }
  return fmt::format("ExitCode:{}", int_or(find(terminated, "exitCode")));
}

bool has_true_condition(const Json& pod, std::string_view type) {
  const JsonArray& conditions = list_at(pod, "status", "conditions");
  return std::any_of(conditions.begin(), conditions.end(), [type](const Json& one) {
    return string_or(find(one, "type")) == type && string_or(find(one, "status")) == "True";
  });
}

// True while init containers still run or have failed.
bool add_init_containers(const Json& pod, Summary& all, Summary& sidecars) {
  const JsonArray& statuses = list_at(pod, "status", "initContainerStatuses");
  for (size_t i = 0; i < statuses.size(); ++i) {
    const Json& status = statuses[i];
    all.count_restarts(status);
    const bool sidecar = is_sidecar(pod, string_or(find(status, "name")));
    if (sidecar) sidecars.count_restarts(status);
    const Json* terminated = at(status, "state", "terminated");
    const Json* waiting = at(status, "state", "waiting");
    if (terminated != nullptr && int_or(find(*terminated, "exitCode")) == 0) continue;
    if (sidecar && bool_or(find(status, "started"))) {
      if (bool_or(find(status, "ready"))) ++all.ready;
      continue;
    }
    const std::string_view why = waiting == nullptr ? "" : string_or(find(*waiting, "reason"));
    if (terminated != nullptr) {
      all.reason = "Init:" + exit_text(*terminated);
    } else if (!why.empty() && why != "PodInitializing") {
      all.reason = fmt::format("Init:{}", why);
    } else {
      all.reason = fmt::format("Init:{}/{}", i, list_at(pod, "spec", "initContainers").size());
    }
    return true;
  }
  return false;
}

void add_containers(const Json& pod, Summary& all) {
  bool running = false;
  const JsonArray& statuses = list_at(pod, "status", "containerStatuses");
  for (size_t i = statuses.size(); i-- > 0;) {
    const Json& status = statuses[i];
    all.count_restarts(status);
    const Json* terminated = at(status, "state", "terminated");
    const std::string_view waiting = string_or(at(status, "state", "waiting", "reason"));
    if (!waiting.empty()) {
      all.reason = waiting;
    } else if (terminated != nullptr) {
      all.reason = exit_text(*terminated);
    } else if (bool_or(find(status, "ready")) && at(status, "state", "running") != nullptr) {
      running = true;
      ++all.ready;
    }
  }
  if (all.reason == "Completed" && running) {
    all.reason = has_true_condition(pod, "Ready") ? "Running" : "NotReady";
  }
}

Summary summary_of(const Json& pod) {
  Summary all;
  all.total = list_at(pod, "spec", "containers").size();
  for (const Json& one : list_at(pod, "spec", "initContainers")) {
    if (string_or(find(one, "restartPolicy")) == "Always") ++all.total;
  }
  const std::string_view phase = string_or(at(pod, "status", "phase"));
  all.reason = phase;
  if (const std::string_view why = string_or(at(pod, "status", "reason")); !why.empty()) {
    all.reason = why;
  }
  for (const Json& condition : list_at(pod, "status", "conditions")) {
    if (string_or(find(condition, "type")) == "PodScheduled" &&
        string_or(find(condition, "reason")) == "SchedulingGated") {
      all.reason = "SchedulingGated";
    }
  }
  Summary sidecars;
  const bool initializing = add_init_containers(pod, all, sidecars);
  if (!initializing || has_true_condition(pod, "Initialized")) {
    all.restarts = sidecars.restarts;
    all.last_restart = sidecars.last_restart;
    add_containers(pod, all);
  }
  if (is_being_deleted(pod)) {
    if (string_or(at(pod, "status", "reason")) == "NodeLost") {
      all.reason = "Unknown";
    } else if (phase != "Succeeded" && phase != "Failed") {
      all.reason = "Terminating";
    }
  }
  return all;
}

std::string gates_text(const Json& pod) {
  const JsonArray& gates = list_at(pod, "spec", "readinessGates");
  if (gates.empty()) return "<none>";
  size_t passed = 0;
  for (const Json& gate : gates) {
    if (has_true_condition(pod, string_or(find(gate, "conditionType")))) ++passed;
  }
  return fmt::format("{}/{}", passed, gates.size());
}

Json or_none(const Json* value) {
  const std::string_view text = string_or(value);
  return Json(text.empty() ? "<none>" : text);
}

}  // namespace

JsonArray pod_cells(const Json& pod, Time now) {
  const Summary all = summary_of(pod);
  std::string restarts = std::to_string(all.restarts);
  if (all.restarts != 0 && !all.last_restart.empty()) {
    restarts = fmt::format("{} ({} ago)", all.restarts, since(all.last_restart, now));
  }
  return {Json(meta_text(pod, "name")),
          Json(fmt::format("{}/{}", all.ready, all.total)),
          Json(all.reason),
          Json(restarts),
          Json(since(meta_text(pod, "creationTimestamp"), now)),
          or_none(at(pod, "status", "podIP")),
          or_none(at(pod, "spec", "nodeName")),
          or_none(at(pod, "status", "nominatedNodeName")),
          Json(gates_text(pod))};
}

}  // namespace grapnel::local
