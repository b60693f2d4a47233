// A Pod as the kubelet reads it: the whole object, shared, and its metadata.
//
// managedFields and resourceVersion are left out of the object: nobody here reads them, and two
// states that differ only in these are equal for us.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "document/elements.h"
#include "document/json.h"
#include "document/json_view.h"
#include "kube/meta.h"

namespace grapnel::local::kubelet {

enum class RestartPolicy { kAlways, kOnFailure, kNever };

struct Pod {
  kube::Meta meta;
  std::shared_ptr<const Json> object;

  const Json& spec() const;    // null where there is none
  const Json& status() const;  // likewise
  std::string uid() const { return meta.uid.text(); }
  std::string_view phase() const;  // as reported
  bool is_finished() const;        // reported as Succeeded or Failed
  RestartPolicy restart_policy() const;
  // The host name that its processes see.
  std::string hostname() const;

  bool operator==(const Pod& other) const;
};

Result<Pod> decode_pod(JsonView object);

// A container of the spec. Pointers are into the pod's object.
struct Container {
  const Json* spec = nullptr;
  bool is_init = false;
  std::string_view name() const { return string_or(find(*spec, "name")); }
  // An init container that runs beside the others until the pod ends.
  bool is_sidecar() const { return is_init && string_or(find(*spec, "restartPolicy")) == "Always"; }
};

std::vector<Container> init_containers(const Pod& pod);
std::vector<Container> main_containers(const Pod& pod);
std::vector<Container> all_containers(const Pod& pod);  // init containers first

}  // namespace grapnel::local::kubelet
