#include "local/node/shim/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/node/shim/util.h"

namespace grapnel::local::shim {
namespace {

bool empty_directory(int parent, const char* name) {
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == EACCES) {
    fchmodat(parent, name, 0700, 0);
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }
  if (fd < 0) return failed("opening %s", name);
  struct stat info{};
  if (fstat(fd, &info) == 0 && (info.st_mode & 0700) != 0700) fchmod(fd, 0700);
  DIR* directory = fdopendir(fd);
  if (directory == nullptr) {
    close(fd);
    return failed("reading %s", name);
  }
  bool ok = true;
  while (const dirent* entry = readdir(directory)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    ok = remove_tree(fd, entry->d_name) && ok;
  }
  closedir(directory);
  return ok;
}

}  // namespace

bool remove_tree(int parent, const char* name) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return true;
  if (errno != EISDIR && errno != EPERM) return failed("removing %s", name);
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return true;
  if (errno != ENOTEMPTY && errno != EEXIST && errno != EACCES) return failed("removing %s", name);
  if (!empty_directory(parent, name)) return false;
  return unlinkat(parent, name, AT_REMOVEDIR) == 0 || failed("removing %s", name);
}

}  // namespace grapnel::local::shim
