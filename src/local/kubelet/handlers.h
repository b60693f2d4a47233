// What probes and life-cycle hooks do to a container: run a program in it, ask it by HTTP, connect
// to it, or just wait.
#pragma once

#include <string>

#include "base/async.h"
#include "base/result.h"
#include "document/json.h"
#include "local/kubelet/pod.h"
#include "local/node/pod_runner.h"

namespace grapnel::local::kubelet {

struct HandlerTarget {
  Executor executor;
  Clock* clock = nullptr;
  PodRunner* runner = nullptr;  // outlives the Task
  std::string pod;              // uid
  std::string address;
  ExecSpec like;   // the container: its name, environment, directory and user
  Json container;  // its spec, for named ports
};

// `handler` has one of exec, httpGet, tcpSocket, grpc, sleep; a grpc one is only connected to. The
// Error says how it failed, in Kubernetes' words. Cut off at the timeout, which is a failure.
Task<Result<>> perform(HandlerTarget target, Json handler, Duration timeout);

// A number, or the name of one of the container's ports; 0: there is none.
uint16_t port_of(const Json& container, const Json* port);
// The request that a httpGet asks for.
std::string http_request(const Json& get, std::string_view address, uint16_t port);
// The code in the first line of an answer; 0: it is none.
int http_status(std::string_view answer);

}  // namespace grapnel::local::kubelet
