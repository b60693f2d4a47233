// What the node is asked to run, in plain structs without Kubernetes objects. The kubelet makes
// them from a Pod. Everything that Kubernetes leaves open (environment, expansion, contents of
// volumes) is decided by then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace grapnel::local {

struct Mount {
  enum class Kind {
    kBind,     // `source`, a file or directory of the host, as it is
    kPrivate,  // `source`, a directory of the host, with a writable layer that nobody else sees
  };
  Kind kind = Kind::kBind;
  std::string source;
  std::string path;
  bool read_only = false;
  bool make_source = false;  // a directory, where it is not there
};

struct Limits {
  std::optional<int64_t> cpu_millis;
  std::optional<int64_t> cpu_request_millis;
  std::optional<uint64_t> memory_bytes;
  std::optional<uint64_t> processes;
};

struct ContainerSpec {
  std::string name;
  uint64_t attempt = 0;  // rises with each restart; the same attempt is never run twice
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // NAME=value
  std::string directory = "/";
  std::vector<Mount> mounts;
  std::vector<std::string> devices;  // /dev/nvidia0 …
  Limits limits;
  std::string log_path;  // none: output is dropped
  uint64_t log_max_bytes = 10 * 1024 * 1024;
  uint64_t log_max_files = 5;
  std::optional<uint32_t> user;
  std::optional<uint32_t> group;
  std::vector<uint32_t> extra_groups;
  bool privileged = false;
  std::optional<uint64_t> capabilities;  // mask; none: Kubernetes' default set
  bool no_new_privileges = false;
  bool read_only_root = false;
  bool terminal = false;
  bool with_stdin = false;
};

struct HostAlias {
  std::string address;
  std::vector<std::string> names;
};

// A directory below the pod's that is held in memory. It lives as long as the pod, and only the
// pod's containers see what is in it.
struct MemoryDirectory {
  std::string path;  // below the pod's directory
  uint64_t bytes = 0;
};

// What a pod asks of its /etc/resolv.conf, beside what the cluster puts there.
struct Resolver {
  bool is_own = false;  // nothing of the cluster's
  std::vector<std::string> servers;
  std::vector<std::string> searches;
  std::vector<std::pair<std::string, std::string>> options;  // a value may be empty
};

struct PodSpec {
  std::string id;  // names its directory: the uid
  std::string hostname;
  std::string subdomain;
  std::string name_space = "default";
  std::vector<HostAlias> host_aliases;
  bool hostname_is_full = false;  // the host calls itself by its full name
  Resolver resolver;
  uint64_t shm_bytes = 64 * 1024 * 1024;
  std::vector<MemoryDirectory> memory;
  bool host_network = false;
  bool share_processes = false;
  std::string note;  // kept, and given back by recover()
};

struct ExecSpec {
  std::string container;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string directory = "/";
  std::optional<uint32_t> user;
  std::optional<uint32_t> group;
  bool terminal = false;
  bool with_stdin = false;
};

enum class ContainerState { kStarting, kRunning, kExited, kFailedToStart, kLost };

struct ContainerStatus {
  std::string name;
  uint64_t attempt = 0;
  ContainerState state = ContainerState::kStarting;
  int host_pid = 0;
  Time started_at{};
  Time finished_at{};
  int exit_code = 0;  // 128 + signal where a signal ended it
  int exit_signal = 0;
  bool out_of_memory = false;
  std::string error;  // why it did not start, or how it was lost

  bool is_over() const { return state >= ContainerState::kExited; }
};

// How pods are kept apart on this machine.
enum class Isolation {
  kRoot,  // namespaces, made by root
  kUser,  // namespaces, below a user namespace of an ordinary user
  kNone,  // plain processes on loopback addresses of their own: namespaces are forbidden here
};

}  // namespace grapnel::local
