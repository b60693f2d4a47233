#include "local/kubelet/pod_status.h"

#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"
#include "local/kubelet/pod_conditions.h"

namespace grapnel::local::kubelet {
namespace {

bool has_failed(const ContainerStatus& status) {
  return status.state != ContainerState::kExited || status.exit_code != 0;
}

bool is_past_deadline(const Pod& pod, Time now) {
  const int64_t deadline = int_or(find(pod.spec(), "activeDeadlineSeconds"), 0);
  const auto started = parse_time(string_or(find(pod.status(), "startTime")));
  return deadline > 0 && started && now >= *started + seconds(deadline);
}

std::string container_id(const Observed& o, const ContainerStatus& status) {
  return fmt::format("grapnel://{}/{}/{}", o.pod->uid(), status.name, status.attempt);
}

Json time_or_null(Time time) {
  if (time == Time{}) return nullptr;
  return Json(format_time(time));
}

std::string_view reason_of_end(const ContainerStatus& status) {
  if (status.state == ContainerState::kLost) {
    return status.error.empty() ? "ContainerStatusUnknown" : "ClusterStopped";
  }
  if (status.state == ContainerState::kFailedToStart) return "StartError";
  if (status.out_of_memory) return "OOMKilled";
  return status.exit_code == 0 ? "Completed" : "Error";
}

Json terminated(const Observed& o, const ContainerStatus& status, const std::string& message) {
  JsonObject out{{"exitCode", status.exit_code}, {"reason", reason_of_end(status)}};
  std::string words = message;
  if (status.state == ContainerState::kFailedToStart) {
    out["exitCode"] = 128;
    words = status.error;
  } else if (status.state == ContainerState::kLost) {
    out["exitCode"] = 137;
    words = status.error.empty() ? "The container could not be located when the pod was looked for"
                                 : status.error;
  }
  if (!words.empty()) out["message"] = words;
  out["startedAt"] = time_or_null(status.started_at);
  out["finishedAt"] = time_or_null(status.finished_at);
  out["containerID"] = container_id(o, status);
  return JsonObject{{"terminated", std::move(out)}};
}

Json waiting(std::string_view reason, std::string_view message = "") {
  JsonObject out{{"reason", reason}};
  if (!message.empty()) out["message"] = message;
  return JsonObject{{"waiting", std::move(out)}};
}

Json never_found() {
  return JsonObject{
      {"terminated",
       JsonObject{{"exitCode", 137},
                  {"reason", "ContainerStatusUnknown"},
                  {"message", "The container could not be located when the pod was terminated"},
                  {"startedAt", nullptr},
                  {"finishedAt", nullptr}}}};
}

struct States {
  Json state;
  Json last = JsonObject();
};

States states_of_ended(const Observed& o, const Progress& progress, const Container& container,
                       const ContainerFacts& facts) {
  const Json now = terminated(o, *facts.now, facts.message);
  const bool starts_again =
      !progress.will_start_nothing && should_restart(*o.pod, container, *facts.now);
  if (starts_again && facts.trouble) {
    return {waiting(facts.trouble->reason, facts.trouble->message), now};
  }
  const Duration wait = back_off(facts);
  if (starts_again && wait > Duration::zero()) {
    const auto& meta = o.pod->meta;
    return {waiting("CrashLoopBackOff",
                    fmt::format("back-off {}s restarting failed container={} pod={}_{}({})",
                                duration_cast<seconds>(wait).count(), container.name(), meta.name(),
                                meta.ns(), o.pod->uid())),
            now};
  }
  States out{.state = now};
  if (facts.before) out.last = terminated(o, *facts.before, facts.message_before);
  return out;
}

States states_of(const Observed& o, const Progress& progress, const Container& container,
                 const ContainerFacts& facts) {
  if (facts.now && facts.now->is_over()) return states_of_ended(o, progress, container, facts);
  States out;
  if (facts.before) out.last = terminated(o, *facts.before, facts.message_before);
  if (facts.now && facts.now->state == ContainerState::kRunning) {
    out.state =
        JsonObject{{"running", JsonObject{{"startedAt", time_or_null(facts.now->started_at)}}}};
    return out;
  }
  if (progress.is_over && progress.is_initialized && !container.is_init) {
    out.state = never_found();
  } else if (facts.trouble) {
    out.state = waiting(facts.trouble->reason, facts.trouble->message);
  } else if (o.trouble) {
    const bool is_before_init =
        !progress.is_initialized && o.trouble->reason == "ContainerCreating";
    out.state = waiting(is_before_init ? "PodInitializing" : o.trouble->reason, o.trouble->message);
  } else if (!progress.is_initialized) {
    out.state = waiting("PodInitializing");
  } else {
    out.state = waiting("ContainerCreating");
  }
  return out;
}

Json container_status(const Observed& o, const Progress& progress, const Container& container) {
  const ContainerFacts& facts = o.facts(container);
  const bool runs = facts.now && facts.now->state == ContainerState::kRunning;
  const bool is_step = container.is_init && !container.is_sidecar();
  States states = states_of(o, progress, container, facts);
  JsonObject out{{"name", container.name()},
                 {"image", string_or(find(*container.spec, "image"))},
                 {"imageID", ""},
                 {"ready", is_container_ready(container, facts)},
                 {"started", runs && (is_step || facts.started)},
                 {"restartCount", facts.now ? static_cast<int64_t>(facts.now->attempt) : 0},
                 {"state", std::move(states.state)},
                 {"lastState", std::move(states.last)}};
  if (facts.now) out["containerID"] = container_id(o, *facts.now);
  return out;
}

std::string_view phase_of(const Observed& o, const Progress& progress) {
  const auto containers = main_containers(*o.pod);
  const auto failed = [&](const Container& c) {
    const ContainerFacts& facts = o.facts(c);
    return !facts.now || has_failed(*facts.now);
  };
  if (progress.is_over) {
    const bool is_cut_off = !o.end_reason.empty() || progress.is_past_deadline;
    const bool is_failure =
        is_cut_off || progress.is_failed_init || std::ranges::any_of(containers, failed);
    return is_failure ? "Failed" : "Succeeded";
  }
  if (!progress.is_initialized) return "Pending";
  const bool waits = std::ranges::any_of(containers, [&](const Container& c) {
    const ContainerFacts& facts = o.facts(c);
    return !facts.now || (facts.now->state == ContainerState::kStarting && !facts.before);
  });
  return waits ? "Pending" : "Running";
}

Json statuses(const Observed& o, const Progress& progress,
              const std::vector<Container>& containers) {
  JsonArray out;
  for (const Container& container : containers) {
    out.push_back(container_status(o, progress, container));
  }
  return out;
}

struct Amounts {
  std::optional<Quantity> request;
  std::optional<Quantity> limit;
};

Amounts amounts_of(const Container& container, std::string_view resource) {
  const auto read = [&](std::string_view list) -> std::optional<Quantity> {
    const auto amount =
        Quantity::parse(string_or(at(*container.spec, "resources", list, resource), "0"));
    if (!amount || amount->is_zero()) return std::nullopt;
    return amount;
  };
  Amounts out{.request = read("requests"), .limit = read("limits")};
  if (!out.request) out.request = out.limit;
  return out;
}

}  // namespace

Progress progress_of(const Observed& o, Time now) {
  Progress out;
  const auto inits = init_containers(*o.pod);
  const auto mains = main_containers(*o.pod);
  const bool began =
      std::ranges::any_of(mains, [&](const Container& c) { return o.facts(c).now.has_value(); });
  out.is_initialized = began || std::ranges::all_of(inits, [&](const Container& c) {
                         const ContainerFacts& facts = o.facts(c);
                         if (!facts.now) return false;
                         if (c.is_sidecar()) return facts.is_running() && facts.started;
                         return facts.now->is_over() && !has_failed(*facts.now);
                       });
  const auto is_done = [&](const Container& c) {
    const ContainerFacts& facts = o.facts(c);
    return facts.now && facts.now->is_over() && !should_restart(*o.pod, c, *facts.now);
  };
  out.is_failed_init = !began && std::ranges::any_of(inits, [&](const Container& c) {
    return is_done(c) && has_failed(*o.facts(c).now);
  });
  out.is_past_deadline = is_past_deadline(*o.pod, now);
  out.will_start_nothing = o.pod->meta.is_being_deleted() || o.pod->is_finished() ||
                           !o.end_reason.empty() || out.is_past_deadline || out.is_failed_init ||
                           (!mains.empty() && std::ranges::all_of(mains, is_done));
  out.is_over = out.will_start_nothing &&
                std::ranges::none_of(all_containers(*o.pod),
                                     [&](const Container& c) { return o.facts(c).is_running(); });
  return out;
}

Json status_of(const Observed& o, const Progress& progress, Time now) {
  const Json& before = o.pod->status();
  JsonObject out = before.is_object() ? before.get_object() : JsonObject();
  const std::string phase(phase_of(o, progress));
  out["phase"] = phase;
  if (out.find("startTime") == out.end()) out["startTime"] = format_time(now);
  if (!o.host_ip.empty()) {
    out["hostIP"] = o.host_ip;
    out["hostIPs"] = JsonArray{JsonObject{{"ip", o.host_ip}}};
  }
  if (!o.address.empty()) {
    out["podIP"] = o.address;
    out["podIPs"] = JsonArray{JsonObject{{"ip", o.address}}};
  }
  if (!out.contains("qosClass")) out["qosClass"] = qos_class(*o.pod);
  if (!o.end_reason.empty()) {
    out["reason"] = o.end_reason;
    out["message"] = o.end_message;
  } else if (progress.is_past_deadline) {
    out["reason"] = "DeadlineExceeded";
    out["message"] = "Pod was active on the node longer than the specified deadline";
  }
  if (const auto inits = init_containers(*o.pod); !inits.empty()) {
    out["initContainerStatuses"] = statuses(o, progress, inits);
  }
  out["containerStatuses"] = statuses(o, progress, main_containers(*o.pod));
  out["conditions"] = conditions_of(o, progress, phase, now);
  return out;
}

std::string_view qos_class(const Pod& pod) {
  bool any = false;
  bool guaranteed = true;
  for (const Container& container : all_containers(pod)) {
    for (const char* resource : {"cpu", "memory"}) {
      const Amounts amounts = amounts_of(container, resource);
      any = any || amounts.request || amounts.limit;
      guaranteed = guaranteed && amounts.limit && amounts.request == amounts.limit;
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

}  // namespace grapnel::local::kubelet
