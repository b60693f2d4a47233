// What to do next for one pod, and what status to report. Pure: reads what is known, does nothing.
//
// The rules are Kubernetes' own: init containers one after the other, sidecars among them before
// what follows, restarts by restartPolicy with a growing back-off, no restart once the pod is being
// deleted, and running containers are told to end before the Pod object may be deleted.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "document/json.h"
#include "local/kubelet/pod.h"
#include "local/node/pod_spec.h"

namespace grapnel::local::kubelet {

// Why something cannot continue, in the words of `state.waiting`, and when to try again.
struct Trouble {
  std::string reason;  // ContainerCreating, CreateContainerConfigError …
  std::string message;
  Time retry_at{};
};

// What is known of one container.
struct ContainerFacts {
  std::optional<ContainerStatus> now;     // of its latest attempt
  std::optional<ContainerStatus> before;  // of the attempt before that
  std::string message;                    // what `now` left as its last words
  std::string message_before;
  std::optional<Trouble> trouble;  // the next attempt could not be made
  unsigned restarts_in_a_row = 0;  // the measure of the back-off
  bool told_to_stop = false;       // `now` was asked to end
  // By probes; without any: true.
  bool ready = true;
  bool started = true;
  bool is_unhealthy = false;  // `now` does not work as it should: it is to end
  std::optional<Duration> unhealthy_grace;

  bool is_running() const { return now && !now->is_over(); }
};

struct Observed {
  const Pod* pod = nullptr;  // as the API server has it, our last report included
  std::string host_ip;
  bool has_sandbox = false;
  bool is_lost = false;            // the sandbox died under its containers
  std::string address;             // of the pod; kept when the sandbox is gone
  std::optional<Trouble> trouble;  // the sandbox or the volumes could not be made
  std::map<std::string, ContainerFacts, std::less<>> containers;
  std::string end_reason;  // not empty: it is to end for this, whatever its containers do
  std::string end_message;

  const ContainerFacts& facts(const Container& container) const;
};

struct StartSandbox {
  bool operator==(const StartSandbox&) const = default;
};
struct StartContainer {
  std::string name;
  uint64_t attempt = 0;
  bool operator==(const StartContainer&) const = default;
};
struct StopContainer {
  std::string name;
  Duration grace{};
  bool operator==(const StopContainer&) const = default;
};
struct RemoveSandbox {
  bool operator==(const RemoveSandbox&) const = default;
};
// The Pod object itself, after everything of the pod has ended.
struct DeletePod {
  bool operator==(const DeletePod&) const = default;
};
using Action = std::variant<StartSandbox, StartContainer, StopContainer, RemoveSandbox, DeletePod>;
std::string describe(const Action& action);  // "start main #0"

struct Decision {
  std::vector<Action> actions;
  Json status;                     // the whole of `status`, ours and what others wrote there
  std::optional<Time> look_again;  // nothing will wake us for what happens then
};

Decision decide(const Observed& observed, Time now);

// How long a container that ended waits for its next start.
Duration back_off(const ContainerFacts& facts);
// Whether it is started again when it has ended like this.
bool should_restart(const Pod& pod, const Container& container, const ContainerStatus& ended);
// The attempt to make next.
uint64_t next_attempt(const ContainerFacts& facts);

// What an earlier kubelet reported of the containers, for pods that the node no longer knows.
// Containers that were running then are lost.
std::map<std::string, ContainerFacts, std::less<>> facts_of_status(const Pod& pod);

}  // namespace grapnel::local::kubelet
