// The first subject: an Echo asks for so many ConfigMaps that hold its value.
//
//   {"kind": "Echo", "spec": {"replicas": 3, "value": "x"}, "status": {"ready": 3, …}}
//
// It has what real kinds have: numbered children, found by a label, drift to repair, a status, a
// finalizer, and a planner that is a pure function.
#pragma once

#include <memory>

#include "runtime/plan.h"
#include "tests/simulation/subject.h"

namespace grapnel::simulation {

inline constexpr kube::Kind kEcho{"example.com", "v1", "Echo", "echoes"};
// On each child; its value is the Echo's name.
inline constexpr std::string_view kEchoLabel = "example.com/echo";

struct Echo {
  kube::Meta meta;
  int64_t replicas = 0;
  std::string value;
  Json status;
  bool operator==(const Echo&) const = default;
};
Result<Echo> decode_echo(JsonView object);

struct EchoChild {
  kube::Meta meta;
  std::string value;
  bool operator==(const EchoChild&) const = default;
};
Result<EchoChild> decode_echo_child(JsonView object);

struct EchoObserved {
  std::shared_ptr<const Echo> echo;
  std::vector<std::shared_ptr<const EchoChild>> children;  // controlled by it
};
runtime::Plan plan(const EchoObserved& o);

std::unique_ptr<Subject> make_echo_subject();

}  // namespace grapnel::simulation
