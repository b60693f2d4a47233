// Plans how a container's root is put together: the host's own files with a private writable layer,
// and over them what every container has (/proc, /dev, /sys, /tmp) and what this one asks for.
// Pure: what it must know of the host is passed in. The shim carries out the plan (shim/mounts.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "local/node/pod_spec.h"
#include "local/node/shim_protocol.h"

namespace grapnel::local {

// One step, as the shim understands it.
struct MountStep {
  shim::MountKind kind = shim::MountKind::kDirectory;
  std::string target;
  std::string source;
  std::string type;
  std::string options;
  uint64_t flags = 0;
  unsigned mode = 0755;
  bool may_fail = false;
  bool make_source = false;
  std::string layer;  // where an overlay keeps what is written
  bool operator==(const MountStep&) const = default;
};

struct HostMount {
  std::string path;
  std::string type;
};

struct HostEntry {
  enum class Kind { kDirectory, kFile, kSymlink, kOther };
  std::string name;
  Kind kind = Kind::kOther;
  std::string link;
  bool readable = true;
};

struct HostFiles {
  std::vector<HostMount> mounts;
  std::function<std::vector<HostEntry>(const std::string& directory)> list;
  std::function<bool(const std::string& path)> exists;
};

struct RootPlanInput {
  Isolation isolation = Isolation::kRoot;
  std::string container_directory;              // ours to use: root/, layers/, tmp/ … are put in it
  std::string pod_directory;                    // shm, hosts, hostname, resolv.conf
  std::string state_directory;                  // hidden from pods
  std::vector<std::string> cgroup_directories;  // of the container, to be shown at /sys/fs/cgroup
};

struct NewDirectory {
  std::string path;
  unsigned mode = 0755;
};

struct RootPlan {
  std::string root;
  std::vector<NewDirectory> directories;  // to be made before the shim is asked
  std::vector<MountStep> steps;
};

RootPlan plan_root(const RootPlanInput& input, const ContainerSpec& container,
                   const HostFiles& host);

// From /proc/self/mountinfo.
std::vector<HostMount> parse_mountinfo(std::string_view text);
// The real ones of this machine.
HostFiles host_files();

std::string encode(const MountStep& step);

}  // namespace grapnel::local
