// A pod's surroundings: how this machine can isolate it, and the files that tell it its own name
// and where to ask for others.
#pragma once

#include <string>

#include "base/result.h"
#include "local/node/pod_spec.h"

namespace grapnel::local {

struct IsolationFound {
  Isolation isolation = Isolation::kNone;
  std::string why;  // for kNone: what forbids namespaces, and the setting that would allow them
};

// Tries it in a child process.
IsolationFound find_isolation();

inline constexpr std::string_view kClusterDomain = "cluster.local";

// "worker-0-0.exp-1.default.svc.cluster.local", or the bare host name where there is no subdomain.
std::string full_name(const PodSpec& pod);
std::string own_name(const PodSpec& pod);  // the host name, in full where the pod wants it so
std::string hosts_file(const PodSpec& pod, std::string_view address);
std::string resolv_conf(const PodSpec& pod, std::string_view dns_address);

// The directory of a pod and the files in it.
Result<> prepare_pod_directory(const std::string& directory, const PodSpec& pod,
                               std::string_view address, std::string_view dns_address);

Result<> make_directory(const std::string& path, unsigned mode);  // and those above it
Result<> write_file(const std::string& path, std::string_view text, unsigned mode);

}  // namespace grapnel::local
