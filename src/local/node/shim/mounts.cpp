#include "local/node/shim/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "local/node/shim/util.h"

namespace grapnel::local::shim {
namespace {

struct Mount {
  MountKind kind = MountKind::kDirectory;
  const char* target = "";
  const char* source = "";
  const char* type = "";
  const char* options = "";
  const char* layer = "";
  unsigned long flags = 0;
  unsigned mode = 0755;
  bool may_fail = false;
  bool make_source = false;
};

Mount decode(std::string_view fields) {
  Mount m;
  Reader reader(fields);
  FieldValue value;
  while (reader.next(value)) {
    switch (value.field) {
      case Field::kMountKind:
        m.kind = static_cast<MountKind>(value.number());
        break;
      case Field::kTarget:
        m.target = value.text.data();
        break;
      case Field::kSource:
        m.source = value.text.data();
        break;
      case Field::kType:
        m.type = value.text.data();
        break;
      case Field::kOptions:
        m.options = value.text.data();
        break;
      case Field::kLayerDirectory:
        m.layer = value.text.data();
        break;
      case Field::kFlags:
        m.flags = value.number();
        break;
      case Field::kMode:
        m.mode = static_cast<unsigned>(value.number());
        break;
      case Field::kMayFail:
        m.may_fail = value.number() != 0;
        break;
      case Field::kMakeSource:
        m.make_source = value.number() != 0;
        break;
      default:
        break;
    }
  }
  return m;
}

// Symbolic links are followed as the container will follow them: they cannot lead out of its root.
int open_inside(int root, const char* path, uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  if (*path == '\0') path = "/";
  return static_cast<int>(syscall(SYS_openat2, root, path, &how, sizeof how));
}

struct FdPath {
  char text[40];
  explicit FdPath(int fd) { snprintf(text, sizeof text, "/proc/self/fd/%d", fd); }
};

int make_parents(int root, const char* path, const char** last) {
  const char* slash = strrchr(path, '/');
  *last = slash != nullptr ? slash + 1 : path;
  char parent[4096];
  const int size = slash != nullptr ? static_cast<int>(slash - path) : 0;
  snprintf(parent, sizeof parent, "%.*s", size, path);
  return make_directories(root, parent, 0755);
}

// An O_PATH fd of `path`, made as a file where it is not there.
int make_file(int root, const char* path) {
  const int there = open_inside(root, path, O_PATH);
  if (there >= 0) return there;
  const char* name = nullptr;
  const int parent = make_parents(root, path, &name);
  if (parent < 0) return -1;
  int made = openat(parent, name, O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (made < 0 && errno == ELOOP) {  // a link to nowhere, as /etc/resolv.conf is on many hosts
    unlinkat(parent, name, 0);
    made = openat(parent, name, O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  }
  close(parent);
  if (made < 0) return -1;
  close(made);
  return open_inside(root, path, O_PATH);
}

// A bind mount takes its flags only in a second step, and in a user namespace must keep those that
// the mount below it was locked with: so add to what is there.
bool set_flags(const char* target, unsigned long flags, bool recursive) {
  mount_attr wanted{};
  if ((flags & MS_RDONLY) != 0) wanted.attr_set |= MOUNT_ATTR_RDONLY;
  if ((flags & MS_NOSUID) != 0) wanted.attr_set |= MOUNT_ATTR_NOSUID;
  if ((flags & MS_NODEV) != 0) wanted.attr_set |= MOUNT_ATTR_NODEV;
  if ((flags & MS_NOEXEC) != 0) wanted.attr_set |= MOUNT_ATTR_NOEXEC;
  if (wanted.attr_set == 0) return true;
  return syscall(SYS_mount_setattr, AT_FDCWD, target, recursive ? AT_RECURSIVE : 0, &wanted,
                 sizeof wanted) == 0;
}

void make_source(const char* path) {
  const int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int made = make_directories(root, path, 0777);
  if (made >= 0) close(made);
  close(root);
}

bool bind(int root, const Mount& m) {
  struct stat info{};
  if (m.make_source) make_source(m.source);
  if (stat(m.source, &info) != 0) return failed("mounting %s at %s", m.source, m.target);
  const int fd =
      S_ISDIR(info.st_mode) ? make_directories(root, m.target, 0755) : make_file(root, m.target);
  if (fd < 0) return failed("making the mount point %s", m.target);
  const FdPath place(fd);
  const bool recursive = (m.flags & MS_REC) != 0;
  bool ok = mount(m.source, place.text, nullptr, MS_BIND | (m.flags & MS_REC), nullptr) == 0;
  close(fd);
  if (!ok) return failed("mounting %s at %s", m.source, m.target);
  if ((m.flags & ~static_cast<unsigned long>(MS_REC)) == 0) return true;
  // The fd names what is below the mount; open the path again to get what is on top.
  const int top = open_inside(root, m.target, O_PATH);
  ok = top >= 0 && set_flags(FdPath(top).text, m.flags, recursive);
  if (top >= 0) close(top);
  return ok || failed("setting the flags of the mount at %s", m.target);
}

// Commas and colons separate the options of an overlay.
void append_escaped(Buffer& options, const char* path) {
  for (; *path != '\0'; ++path) {
    if (strchr(",:\\", *path) != nullptr) options.append("\\", 1);
    options.append(path, 1);
  }
}

bool overlay_at(const char* place, const Mount& m) {
  struct stat info{};
  if (stat(m.source, &info) != 0) return false;
  char upper[4096];
  char work[4096];
  snprintf(upper, sizeof upper, "%s/upper", m.layer);
  snprintf(work, sizeof work, "%s/work", m.layer);
  mkdir(m.layer, 0755);
  mkdir(work, 0755);
  // The top of an overlay looks like its upper directory.
  if (mkdir(upper, 0755) == 0) {
    [[maybe_unused]] const int owned = chown(upper, info.st_uid, info.st_gid);
    chmod(upper, info.st_mode & 07777);
  }
  Buffer options;
  options.append("lowerdir=", 9);
  append_escaped(options, m.source);
  options.append(",upperdir=", 10);
  append_escaped(options, upper);
  options.append(",workdir=", 9);
  append_escaped(options, work);
  options.append(m.options, strlen(m.options) + 1);
  return mount("overlay", place, "overlay", m.flags, options.data()) == 0;
}

// The disk may not support an upper layer (it is itself an overlay, or a network disk): then memory
// holds it. Where overlays are not allowed at all, the host's files are shown read-only.
bool overlay(int root, const Mount& m) {
  const int fd = make_directories(root, m.target, 0755);
  if (fd < 0) return failed("making the mount point %s", m.target);
  const FdPath place(fd);
  bool ok = overlay_at(place.text, m);
  const int first_error = errno;
  if (!ok && mount("tmpfs", m.layer, "tmpfs", 0, "mode=755") == 0) ok = overlay_at(place.text, m);
  if (!ok) {
    ok = mount(m.source, place.text, nullptr, MS_BIND | MS_REC, nullptr) == 0;
    const int top = ok ? open_inside(root, m.target, O_PATH) : -1;
    ok = ok && top >= 0 && set_flags(FdPath(top).text, MS_RDONLY, true);
    if (top >= 0) close(top);
  }
  close(fd);
  errno = first_error;
  return ok || failed("laying a private layer over %s", m.source);
}

bool file_system(int root, const Mount& m) {
  const int fd = make_directories(root, m.target, m.mode);
  if (fd < 0) return failed("making the mount point %s", m.target);
  bool ok = mount(m.source, FdPath(fd).text, m.type, m.flags, m.options) == 0;
  // Inside a container, mounting a new /proc may be forbidden: then use that container's.
  if (!ok && m.source[0] == '/') {
    ok = mount(m.source, FdPath(fd).text, nullptr, MS_BIND | MS_REC, nullptr) == 0;
  }
  close(fd);
  return ok || failed("mounting %s at %s", m.type, m.target);
}

bool link_there(int root, const Mount& m) {
  const char* name = nullptr;
  const int parent = make_parents(root, m.target, &name);
  if (parent < 0) return failed("making %s", m.target);
  const bool ok = symlinkat(m.source, parent, name) == 0 || errno == EEXIST;
  close(parent);
  return ok || failed("making the link %s", m.target);
}

bool read_only(int root, const Mount& m) {
  const int fd = open_inside(root, m.target, O_PATH);
  const bool ok = fd >= 0 && set_flags(FdPath(fd).text, MS_RDONLY, false);
  if (fd >= 0) close(fd);
  return ok || failed("making %s read-only", m.target);
}

bool carry_out(int root, const Mount& m) {
  int fd = -1;
  switch (m.kind) {
    case MountKind::kFileSystem:
      return file_system(root, m);
    case MountKind::kBind:
      return bind(root, m);
    case MountKind::kOverlay:
      return overlay(root, m);
    case MountKind::kSymlink:
      return link_there(root, m);
    case MountKind::kReadOnly:
      return read_only(root, m);
    case MountKind::kDirectory:
      fd = make_directories(root, m.target, m.mode);
      break;
    case MountKind::kFile:
      fd = make_file(root, m.target);
      break;
  }
  if (fd < 0) return failed("making %s", m.target);
  close(fd);
  return true;
}

}  // namespace

int make_directories(int root, const char* path, unsigned mode) {
  int there = open_inside(root, path, O_PATH | O_DIRECTORY);
  if (there >= 0 || errno != ENOENT) return there;
  char prefix[4096];
  const size_t length = strlen(path);
  if (length >= sizeof prefix) {
    errno = ENAMETOOLONG;
    return -1;
  }
  int parent = open_inside(root, "/", O_PATH | O_DIRECTORY);
  for (size_t end = 0; end <= length && parent >= 0;) {
    while (path[end] == '/') ++end;
    if (end >= length) break;
    const size_t start = end;
    while (end < length && path[end] != '/') ++end;
    memcpy(prefix, path, end);
    prefix[end] = '\0';
    there = open_inside(root, prefix, O_PATH | O_DIRECTORY);
    if (there < 0 && errno == ENOENT) {
      if (mkdirat(parent, prefix + start, mode) != 0 && errno != EEXIST) {
        close(parent);
        return -1;
      }
      // The mode must be exactly this, whatever the umask.
      fchmodat(parent, prefix + start, mode, 0);
      there = open_inside(root, prefix, O_PATH | O_DIRECTORY);
    }
    close(parent);
    parent = there;
  }
  return parent;
}

bool apply_mount(const char* root, std::string_view fields) {
  const Mount m = decode(fields);
  // Opened each time: a mount at / itself lies on top of what an older fd means.
  const int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed("opening %s", root);
  const bool ok = carry_out(fd, m);
  close(fd);
  return ok || m.may_fail;
}

bool enter_root(const char* root) {
  if (chdir(root) != 0) return failed("entering %s", root);
  if (syscall(SYS_pivot_root, ".", ".") != 0) return failed("changing the root to %s", root);
  if (umount2(".", MNT_DETACH) != 0) return failed("leaving the host's root");
  return chdir("/") == 0 || failed("entering the new root");
}

}  // namespace grapnel::local::shim
