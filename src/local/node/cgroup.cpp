#include "local/node/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/fd.h"
#include "base/files.h"
#include "base/strings.h"
#include "local/node/sandbox.h"

namespace grapnel::local {
namespace {

constexpr std::array<std::string_view, 3> kControllers = {"cpu", "memory", "pids"};

struct Hierarchy {
  std::string mount_point;
  std::string root;  // the cgroup that is mounted there
  bool is_version_2 = false;
  std::vector<std::string> controllers;
};

bool put(const std::string& path, std::string_view text) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool lists(std::string_view words, std::string_view word, char separator) {
  const auto all = split(trim(words), separator);
  return std::ranges::find(all, word) != all.end();
}

std::vector<Hierarchy> hierarchies(std::string_view mountinfo) {
  std::vector<Hierarchy> found;
  for (const std::string_view line : split(mountinfo, '\n')) {
    const auto fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 5 || fields.end() - dash < 4) continue;
    const std::string_view type = *(dash + 1);
    if (type != "cgroup" && type != "cgroup2") continue;
    Hierarchy h{.mount_point = std::string(fields[4]),
                .root = std::string(fields[3]),
                .is_version_2 = type == "cgroup2",
                .controllers = {}};
    for (const std::string_view controller : kControllers) {
      if (!h.is_version_2 && lists(*(dash + 3), controller, ',')) {
        h.controllers.emplace_back(controller);
      }
    }
    found.push_back(std::move(h));
  }
  return found;
}

// Our own cgroup in each hierarchy, by controller ("" in version 2).
std::map<std::string, std::string, std::less<>> own_paths(std::string_view text) {
  std::map<std::string, std::string, std::less<>> paths;
  for (const std::string_view line : split(text, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    for (const std::string_view name : split(line.substr(first + 1, second - first - 1), ',')) {
      paths[std::string(name)] = std::string(line.substr(second + 1));
    }
  }
  return paths;
}

std::string directory_of(const Hierarchy& h, std::string_view own) {
  if (h.root != "/" && own.starts_with(h.root)) own.remove_prefix(h.root.size());
  std::string path = h.mount_point + std::string(own);
  while (path.ends_with('/')) path.pop_back();
  return path;
}

std::string controllers_of(const std::string& directory) {
  const auto text = read_file(directory + "/cgroup.controllers");
  return text ? *text : std::string();
}

// Version 2: controllers must be switched on in each cgroup for those below it.
void switch_on(const std::string& directory) {
  for (const std::string_view controller : kControllers) {
    put(directory + "/cgroup.subtree_control", fmt::format("+{}", controller));
  }
}

void remove_below(const std::string& directory) {
  if (DIR* opened = opendir(directory.c_str())) {
    while (const dirent* entry = readdir(opened)) {
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
        remove_below(directory + "/" + entry->d_name);
      }
    }
    closedir(opened);
  }
  rmdir(directory.c_str());
}

bool make(const std::string& path) {
  return mkdir(path.c_str(), 0755) == 0 || errno == EEXIST;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> cgroup_settings(std::string_view controller,
                                                                 const Limits& limits,
                                                                 bool is_version_2) {
  std::vector<std::pair<std::string, std::string>> files;
  const auto add = [&](const char* file, auto value) {
    files.emplace_back(file, fmt::format("{}", value));
  };
  if (controller == "cpu") {
    // A share of 1024 is one CPU; version 2 counts from 1 to 10000 where version 1 has 2 to 262144.
    if (limits.cpu_request_millis) {
      const int64_t shares =
          std::clamp<int64_t>(*limits.cpu_request_millis * 1024 / 1000, 2, 262144);
      if (is_version_2) add("cpu.weight", 1 + (shares - 2) * 9999 / 262142);
      if (!is_version_2) add("cpu.shares", shares);
    }
    if (limits.cpu_millis) {
      const int64_t quota = std::max<int64_t>(1000, *limits.cpu_millis * 100);
      if (is_version_2) add("cpu.max", fmt::format("{} 100000", quota));
      if (!is_version_2) {
        add("cpu.cfs_period_us", 100000);
        add("cpu.cfs_quota_us", quota);
      }
    }
  } else if (controller == "memory") {
    if (limits.memory_bytes) {
      add(is_version_2 ? "memory.max" : "memory.limit_in_bytes", *limits.memory_bytes);
      // Kubernetes ends the whole container when one of its processes is killed.
      if (is_version_2) add("memory.oom.group", 1);
    }
  } else if (controller == "pids") {
    if (limits.processes) add("pids.max", *limits.processes);
  }
  return files;
}

Cgroups Cgroups::find(const std::string& name) {
  const auto mountinfo = read_file("/proc/self/mountinfo");
  const auto own = read_file("/proc/self/cgroup");
  return find(name, mountinfo ? *mountinfo : "", own ? *own : "");
}

Cgroups Cgroups::find(const std::string& name, std::string_view mountinfo,
                      std::string_view own_cgroups) {
  Cgroups found;
  const auto own = own_paths(own_cgroups);
  const auto all = hierarchies(mountinfo);
  for (const Hierarchy& h : all) {
    if (h.is_version_2 || h.controllers.empty()) continue;
    const auto path = own.find(h.controllers[0]);
    if (path == own.end()) continue;
    const std::string directory = directory_of(h, path->second) + "/" + name;
    if (!make(directory)) continue;
    found.places_.push_back({.directory = directory, .controllers = h.controllers});
  }
  if (!found.places_.empty()) return found;
  for (const Hierarchy& h : all) {
    const auto path = own.find(std::string_view(""));
    if (!h.is_version_2 || path == own.end()) continue;
    // A cgroup with processes in it, as ours, can pass nothing on; one further up may.
    std::string parent = directory_of(h, path->second);
    while (parent.size() >= h.mount_point.size()) {
      const std::string directory = parent + "/" + name;
      if (make(directory)) {
        if (!lists(controllers_of(directory), "memory", ' ')) switch_on(parent);
        if (lists(controllers_of(directory), "memory", ' ')) {
          switch_on(directory);
          found.is_version_2_ = true;
          Place place{.directory = directory, .controllers = {}};
          for (const std::string_view c : kControllers) {
            if (lists(controllers_of(directory), c, ' ')) place.controllers.emplace_back(c);
          }
          found.places_.push_back(std::move(place));
          return found;
        }
        rmdir(directory.c_str());
      }
      parent.resize(parent.rfind('/'));
    }
  }
  return found;
}

bool Cgroups::can_limit(std::string_view controller) const {
  return std::ranges::any_of(places_, [&](const Place& place) {
    return std::ranges::find(place.controllers, controller) != place.controllers.end();
  });
}

Result<ContainerCgroup> Cgroups::create(const std::string& pod, const std::string& container,
                                        const Limits& limits) const {
  ContainerCgroup made;
  for (const Place& place : places_) {
    const std::string pod_directory = place.directory + "/" + pod;
    const std::string directory = pod_directory + "/" + container;
    if (!make(pod_directory)) {
      return fail(Reason::kSystem, "making {}: {}", pod_directory, strerror(errno));
    }
    if (is_version_2_) switch_on(pod_directory);
    if (!make(directory)) {
      return fail(Reason::kSystem, "making {}: {}", directory, strerror(errno));
    }
    for (const std::string& controller : place.controllers) {
      for (const auto& [file, value] : cgroup_settings(controller, limits, is_version_2_)) {
        if (!put(directory + "/" + file, value)) {
          return fail(Reason::kSystem, "writing {} to {}/{}: {}", value, directory, file,
                      strerror(errno));
        }
      }
      if (controller == "memory") {
        made.oom_file = directory + (is_version_2_ ? "/memory.events" : "/memory.oom_control");
      }
    }
    made.directories.push_back(directory);
    made.join_files.push_back(directory + "/cgroup.procs");
  }
  return made;
}

void Cgroups::remove(const std::string& pod) const {
  for (const Place& place : places_) remove_below(place.directory + "/" + pod);
}

void Cgroups::remove_all() const {
  for (const Place& place : places_) remove_below(place.directory);
}

}  // namespace grapnel::local
