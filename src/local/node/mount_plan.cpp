#include "local/node/mount_plan.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "base/strings.h"

namespace grapnel::local {
namespace {

using shim::MountKind;

// Not the host's in any container.
constexpr std::array<std::string_view, 6> kOwn = {"/proc", "/sys", "/dev",
                                                  "/tmp",  "/run", "/var/tmp"};
// Those of them that an image would have as folders of its own.
constexpr std::array<const char*, 3> kFreshDirectories = {"/tmp", "/var/tmp", "/run"};
// File systems that hold files of the kind an image would.
constexpr std::array<std::string_view, 20> kReal = {
    "ext2",     "ext3", "ext4",     "xfs",     "btrfs",    "zfs",  "bcachefs",
    "f2fs",     "jfs",  "reiserfs", "nfs",     "nfs4",     "cifs", "9p",
    "virtiofs", "vfat", "exfat",    "fuseblk", "squashfs", "erofs"};
// More steps than this for one directory would cost more time than the private layer is worth.
constexpr size_t kMostEntries = 300;

bool is_at_or_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

bool is_below(std::string_view path, std::string_view directory) {
  return path != directory && is_at_or_below(path, directory);
}

bool is_own(std::string_view path) {
  return std::ranges::any_of(kOwn, [&](auto own) { return is_at_or_below(path, own); });
}

class Planner {
 public:
  Planner(const RootPlanInput& input, const ContainerSpec& container, const HostFiles& host)
      : input_(input), container_(container), host_(host) {}

  RootPlan plan() {
    plan_.root = directory("root", 0755);
    directory("layers", 0755);
    if (input_.isolation == Isolation::kRoot) {
      whole_root();
    } else {
      folder_by_folder();
    }
    own_directories();
    pseudo_file_systems();
    devices();
    names();
    asked_for();
    if (container_.read_only_root) {
      for (const std::string& target : layered_) {
        step({.kind = MountKind::kReadOnly, .target = target});
      }
      for (const char* target : kFreshDirectories) {
        const bool is_volume = std::ranges::any_of(
            container_.mounts, [&](const Mount& m) { return m.path == target; });
        if (!is_volume) step({.kind = MountKind::kReadOnly, .target = target});
      }
    }
    return std::move(plan_);
  }

 private:
  void step(MountStep s) { plan_.steps.push_back(std::move(s)); }

  std::string directory(const std::string& name, unsigned mode) {
    plan_.directories.push_back({input_.container_directory + "/" + name, mode});
    return plan_.directories.back().path;
  }

  void overlay(const std::string& lower, const std::string& target) {
    step({.kind = MountKind::kOverlay,
          .target = target,
          .source = lower,
          // Without root the overlay keeps its notes where an ordinary user may write them.
          .options = input_.isolation == Isolation::kRoot ? "" : ",userxattr",
          .layer = fmt::format("{}/layers/{}", input_.container_directory, layers_++)});
    layered_.push_back(target);
  }

  // One layer over /, and one over each disk that is mounted below it.
  void whole_root() {
    overlay("/", "/");
    std::set<std::string> seen;
    for (const HostMount& mount : host_.mounts) {
      if (mount.path == "/" || is_own(mount.path) || !seen.insert(mount.path).second) continue;
      if (is_at_or_below(mount.path, input_.state_directory)) continue;
      if (std::ranges::find(kReal, mount.type) == kReal.end()) continue;
      overlay(mount.path, mount.path);
    }
  }

  // In a user namespace a directory with mounts below it cannot be the lower one of an overlay: it
  // would uncover what those mounts hide. So such a directory is made anew and filled entry by
  // entry.
  void folder_by_folder() {
    step({.kind = MountKind::kBind, .target = "/", .source = plan_.root});
    layered_.emplace_back("/");
    fill("/");
  }

  void fill(const std::string& directory) {
    for (const HostEntry& entry : host_.list(directory)) {
      const std::string path = (directory == "/" ? "" : directory) + "/" + entry.name;
      if (std::ranges::find(kOwn, path) != kOwn.end()) continue;
      if (path == input_.state_directory) continue;
      switch (entry.kind) {
        case HostEntry::Kind::kSymlink:
          step({.kind = MountKind::kSymlink, .target = path, .source = entry.link});
          break;
        case HostEntry::Kind::kFile:
          if (!entry.readable) break;
          step({.kind = MountKind::kBind,
                .target = path,
                .source = path,
                .flags = MS_RDONLY,
                .may_fail = true});
          break;
        case HostEntry::Kind::kDirectory:
          one_folder(path, entry);
          break;
        case HostEntry::Kind::kOther:
          break;
      }
    }
  }

  void one_folder(const std::string& path, const HostEntry& entry) {
    if (!entry.readable) {
      step({.kind = MountKind::kDirectory, .target = path});
      return;
    }
    if (!must_be_made_anew(path)) {
      overlay(path, path);
    } else if (host_.list(path).size() > kMostEntries) {
      step({.kind = MountKind::kBind,
            .target = path,
            .source = path,
            .flags = MS_REC | MS_RDONLY,
            .may_fail = true});
    } else {
      step({.kind = MountKind::kDirectory, .target = path});
      fill(path);
    }
  }

  bool must_be_made_anew(const std::string& path) const {
    const auto is_inside = [&](const auto& mount) { return is_below(mount.path, path); };
    if (std::ranges::any_of(host_.mounts, is_inside)) return true;
    // A mount point that is not there can be made by us at the top of an overlay, but below it
    // directories are still their owner's.
    return std::ranges::any_of(container_.mounts, [&](const Mount& mount) {
      return is_inside(mount) && mount.path.find('/', path.size() + 1) != std::string::npos &&
             !host_.exists(mount.path);
    });
  }

  // Empty at first, as in an image: what other programs left in the host's /tmp confuses (Ray looks
  // there for a running cluster).
  void own_directories() {
    const auto fresh = [&](const char* name, const char* target, unsigned mode) {
      step({.kind = MountKind::kBind, .target = target, .source = directory(name, mode)});
    };
    fresh("tmp", "/tmp", 01777);
    fresh("var-tmp", "/var/tmp", 01777);
    fresh("run", "/run", 0755);
    // But the user's working directory is visible, wherever it is.
    const std::string& here = container_.directory;
    if ((is_below(here, "/tmp") || is_below(here, "/var/tmp")) && host_.exists(here) &&
        !is_at_or_below(input_.state_directory, here)) {
      overlay(here, here);
    }
    if (input_.state_directory.empty() || is_own(input_.state_directory)) return;
    step({.kind = MountKind::kFileSystem,
          .target = input_.state_directory,
          .source = "hidden",
          .type = "tmpfs",
          .options = "size=4k,mode=000",
          .flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
          .may_fail = input_.isolation != Isolation::kRoot});
  }

  void pseudo_file_systems() {
    constexpr uint64_t kSafe = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    step({.kind = MountKind::kFileSystem,
          .target = "/proc",
          .source = "/proc",
          .type = "proc",
          .flags = kSafe});
    step({.kind = MountKind::kFileSystem,
          .target = "/sys",
          .source = "/sys",
          .type = "sysfs",
          .flags = kSafe | (container_.privileged ? 0U : MS_RDONLY)});
    if (!container_.privileged && input_.isolation == Isolation::kRoot) {
      for (const char* path :
           {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}) {
        step({.kind = MountKind::kBind,
              .target = path,
              .source = path,
              .flags = MS_RDONLY,
              .may_fail = true});
      }
      for (const char* path : {"/proc/kcore", "/proc/keys", "/proc/timer_list"}) {
        step({.kind = MountKind::kBind, .target = path, .source = "/dev/null", .may_fail = true});
      }
    }
    cgroups();
  }

  // The container's own cgroup is the root of what it sees: programs read their limits there.
  void cgroups() {
    if (input_.cgroup_directories.empty()) {
      step({.kind = MountKind::kBind,
            .target = "/sys/fs/cgroup",
            .source = "/sys/fs/cgroup",
            .flags = MS_REC | MS_RDONLY,
            .may_fail = true});
      return;
    }
    constexpr std::string_view kTop = "/sys/fs/cgroup/";
    if (input_.cgroup_directories.size() == 1) {
      step({.kind = MountKind::kBind,
            .target = "/sys/fs/cgroup",
            .source = input_.cgroup_directories[0],
            .flags = MS_RDONLY,
            .may_fail = true});
      return;
    }
    step({.kind = MountKind::kFileSystem,
          .target = "/sys/fs/cgroup",
          .source = "cgroup",
          .type = "tmpfs",
          .options = "mode=755,size=64k",
          .may_fail = true});
    for (const std::string& path : input_.cgroup_directories) {
      if (!path.starts_with(kTop)) continue;
      const std::string_view controller = split(std::string_view(path).substr(kTop.size()), '/')[0];
      step({.kind = MountKind::kBind,
            .target = fmt::format("{}{}", kTop, controller),
            .source = path,
            .flags = MS_RDONLY,
            .may_fail = true});
    }
  }

  void device(const std::string& path, bool may_fail) {
    step({.kind = MountKind::kBind, .target = path, .source = path, .may_fail = may_fail});
  }

  void devices() {
    if (container_.privileged) {
      step({.kind = MountKind::kBind, .target = "/dev", .source = "/dev", .flags = MS_REC});
    } else {
      step({.kind = MountKind::kFileSystem,
            .target = "/dev",
            .source = "dev",
            .type = "tmpfs",
            .options = "mode=755,size=64k",
            .flags = MS_NOSUID | MS_NOEXEC});
      for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
        device(fmt::format("/dev/{}", name), std::string_view(name) == "tty");
      }
      for (const auto& [name, text] : {std::pair{"fd", "/proc/self/fd"},
                                       {"stdin", "/proc/self/fd/0"},
                                       {"stdout", "/proc/self/fd/1"},
                                       {"stderr", "/proc/self/fd/2"},
                                       {"ptmx", "pts/ptmx"}}) {
        step({.kind = MountKind::kSymlink, .target = fmt::format("/dev/{}", name), .source = text});
      }
    }
    step({.kind = MountKind::kFileSystem,
          .target = "/dev/pts",
          .source = "devpts",
          .type = "devpts",
          .options = input_.isolation == Isolation::kRoot
                         ? "newinstance,ptmxmode=0666,mode=0620,gid=5"
                         : "newinstance,ptmxmode=0666,mode=0620",
          .flags = MS_NOSUID | MS_NOEXEC});
    step({.kind = MountKind::kBind, .target = "/dev/shm", .source = input_.pod_directory + "/shm"});
    step({.kind = MountKind::kFileSystem,
          .target = "/dev/mqueue",
          .source = "mqueue",
          .type = "mqueue",
          .flags = MS_NOSUID | MS_NODEV | MS_NOEXEC,
          .may_fail = true});
    for (const std::string& path : container_.devices) device(path, false);
  }

  void names() {
    for (const char* name : {"hosts", "hostname", "resolv.conf"}) {
      step({.kind = MountKind::kBind,
            .target = fmt::format("/etc/{}", name),
            .source = fmt::format("{}/{}", input_.pod_directory, name)});
    }
  }

  void asked_for() {
    // A mount inside another comes after it, whatever the order in the pod.
    std::multimap<ptrdiff_t, const Mount*> by_depth;
    for (const Mount& mount : container_.mounts) {
      by_depth.emplace(std::ranges::count(mount.path, '/'), &mount);
    }
    for (const auto& [depth, mount] : by_depth) {
      const uint64_t read_only = mount->read_only ? MS_RDONLY : 0U;
      switch (mount->kind) {
        case Mount::Kind::kBind:
          step({.kind = MountKind::kBind,
                .target = mount->path,
                .source = mount->source,
                .flags = MS_REC | read_only,
                .make_source = mount->make_source});
          break;
        case Mount::Kind::kPrivate:
          overlay(mount->source, mount->path);
          break;
      }
    }
  }

  const RootPlanInput& input_;
  const ContainerSpec& container_;
  const HostFiles& host_;
  RootPlan plan_;
  int layers_ = 0;
  std::vector<std::string> layered_;
};

// mountinfo writes a space as \040.
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      const auto digit = [&](size_t at) { return text[at] - '0'; };
      out += static_cast<char>(digit(i + 1) * 64 + digit(i + 2) * 8 + digit(i + 3));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<HostEntry> list_directory(const std::string& directory) {
  std::vector<HostEntry> entries;
  DIR* opened = opendir(directory.c_str());
  if (opened == nullptr) return entries;
  while (const dirent* found = readdir(opened)) {
    HostEntry entry{.name = found->d_name};
    if (entry.name == "." || entry.name == "..") continue;
    const std::string path = directory + "/" + entry.name;
    struct stat info{};
    if (lstat(path.c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      entry.kind = HostEntry::Kind::kDirectory;
      entry.readable = access(path.c_str(), R_OK | X_OK) == 0;
    } else if (S_ISREG(info.st_mode)) {
      entry.kind = HostEntry::Kind::kFile;
      entry.readable = access(path.c_str(), R_OK) == 0;
    } else if (S_ISLNK(info.st_mode)) {
      char text[4096];
      const ssize_t size = readlink(path.c_str(), text, sizeof text);
      if (size <= 0) continue;
      entry.kind = HostEntry::Kind::kSymlink;
      entry.link.assign(text, static_cast<size_t>(size));
    }
    entries.push_back(std::move(entry));
  }
  closedir(opened);
  std::ranges::sort(entries, {}, &HostEntry::name);
  return entries;
}

}  // namespace

RootPlan plan_root(const RootPlanInput& input, const ContainerSpec& container,
                   const HostFiles& host) {
  return Planner(input, container, host).plan();
}

std::vector<HostMount> parse_mountinfo(std::string_view text) {
  std::vector<HostMount> mounts;
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 5 || dash == fields.end() || dash + 1 == fields.end()) continue;
    mounts.push_back({.path = unescape(fields[4]), .type = std::string(*(dash + 1))});
  }
  return mounts;
}

HostFiles host_files() {
  std::ifstream file("/proc/self/mountinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return {.mounts = parse_mountinfo(text),
          .list = list_directory,
          .exists = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; }};
}

std::string encode(const MountStep& step) {
  using shim::Field;
  std::string bytes;
  shim::Writer writer(bytes);
  writer.number(Field::kMountKind, static_cast<uint64_t>(step.kind));
  writer.text(Field::kTarget, step.target);
  writer.number(Field::kMode, step.mode);
  if (!step.source.empty()) writer.text(Field::kSource, step.source);
  if (!step.type.empty()) writer.text(Field::kType, step.type);
  if (!step.options.empty()) writer.text(Field::kOptions, step.options);
  if (step.flags != 0) writer.number(Field::kFlags, step.flags);
  if (step.may_fail) writer.number(Field::kMayFail, 1);
  if (step.make_source) writer.number(Field::kMakeSource, 1);
  if (!step.layer.empty()) writer.text(Field::kLayerDirectory, step.layer);
  return bytes;
}

}  // namespace grapnel::local
