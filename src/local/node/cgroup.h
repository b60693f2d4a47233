// Limits on CPU, memory and the number of processes, by control groups of version 1 or 2, where
// this program may create some. All of them are below a cgroup that we may write to, so limits set
// on us from outside hold for pods, too.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "local/node/pod_spec.h"

namespace grapnel::local {

// What a container's first process joins, and where its kills for lack of memory are counted.
struct ContainerCgroup {
  std::vector<std::string> directories;
  std::vector<std::string> join_files;
  std::string oom_file;
};

class Cgroups {
 public:
  // `name` sets our directories apart from those of another cluster on this machine.
  static Cgroups find(const std::string& name);
  // With these texts instead of this process's own; for tests.
  static Cgroups find(const std::string& name, std::string_view mountinfo,
                      std::string_view own_cgroups);

  bool can_limit(std::string_view controller) const;  // cpu, memory, pids
  Result<ContainerCgroup> create(const std::string& pod, const std::string& container,
                                 const Limits& limits) const;
  void remove(const std::string& pod) const;
  void remove_all() const;

 private:
  struct Place {
    std::string directory;
    std::vector<std::string> controllers;
  };
  std::vector<Place> places_;  // version 1: one for each hierarchy
  bool is_version_2_ = false;
};

// File names and what to write into them, for one controller.
std::vector<std::pair<std::string, std::string>> cgroup_settings(std::string_view controller,
                                                                 const Limits& limits,
                                                                 bool is_version_2);

}  // namespace grapnel::local
