// A pod's volumes: planning what they consist of (pure), and making them.
//
// Files from ConfigMaps, Secrets and the pod itself are laid out as on any node: the visible names
// are links through `..data`, which is exchanged as a whole, so that a reader never sees a mixture
// of old and new.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "local/kubelet/environment.h"
#include "local/kubelet/pod.h"
#include "local/kubelet/sources.h"
#include "local/node/pod_spec.h"

namespace grapnel::local::kubelet {

struct VolumeFile {
  std::string path;  // below the volume
  std::string content;
  unsigned mode = 0644;
  bool operator==(const VolumeFile&) const = default;
};

struct Volume {
  enum class Kind {
    kDirectory,  // ours, empty at first
    kMemory,     // ours, in memory: the pod was started with it
    kShm,        // the pod's own /dev/shm
    kHost,       // of the host, checked as `host_type` asks
    kFiles,      // ours, with `files`
  };
  std::string name;
  Kind kind = Kind::kDirectory;
  std::string source;  // on the host
  std::string host_type;
  std::vector<VolumeFile> files;
  std::optional<uint32_t>
      group;  // who may write in a directory of ours, with all that is made there
};

struct VolumeInput {
  const Pod* pod = nullptr;
  const Sources* sources = nullptr;
  const NodeFacts* node = nullptr;
  std::string pod_address;
  std::string pod_directory;  // goes with the pod
};

// The Error says what is missing, as "MountVolume.SetUp failed for volume …".
Result<std::vector<Volume>> plan_volumes(const VolumeInput& input);
// The size that the pod's /dev/shm should have: of a memory volume mounted there.
uint64_t shm_bytes(const Pod& pod, const NodeFacts& node);
// The other volumes that are held in memory.
std::vector<MemoryDirectory> memory_directories(const Pod& pod, const NodeFacts& node);
// Whether it has volumes whose files may change while it runs.
bool has_live_files(const Pod& pod, const NodeFacts& node);
// Makes what is missing and brings files up to date.
Result<> make_volumes(const std::vector<Volume>& volumes);

struct Mounts {
  std::vector<Mount> mounts;             // outer ones first
  std::vector<std::string> directories;  // to be made before: subPaths
};
// What the spec asks for, and the API server's token where every container looks for it.
Result<Mounts> mounts_of(const Container& container, const std::vector<Volume>& volumes,
                         const ContainerEnvironment& environment);

}  // namespace grapnel::local::kubelet
