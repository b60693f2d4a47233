// Making volumes: the part of volumes.h that touches the disk.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/fd.h"
#include "base/files.h"
#include "base/strings.h"
#include "local/kubelet/volumes.h"
#include "local/node/sandbox.h"

namespace grapnel::local::kubelet {
namespace {

namespace fs = std::filesystem;

Failure system_failure(std::string_view what, const std::string& path) {
  return fail(Reason::kSystem, "{} {}: {}", what, path, std::strerror(errno));
}

bool holds(const std::string& directory, const std::vector<VolumeFile>& files) {
  std::error_code error;
  size_t found = 0;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (!at->is_directory(error)) ++found;
  }
  if (error || found != files.size()) return false;
  for (const VolumeFile& file : files) {
    const auto content = read_file(directory + "/" + file.path);
    if (!content || *content != file.content) return false;
  }
  return true;
}

Result<> write_files(const std::string& directory, const std::vector<VolumeFile>& files) {
  for (const VolumeFile& file : files) {
    const std::string path = directory + "/" + file.path;
    if (auto made = make_directory(path.substr(0, path.rfind('/')), 0755); !made) return made;
    if (auto done = write_file(path, file.content, file.mode); !done) return done;
  }
  return {};
}

// Visible names: a link for each first part of a path; links to what is gone, go.
Result<> link_names(const std::string& directory, const std::vector<VolumeFile>& files) {
  std::error_code error;
  for (const VolumeFile& file : files) {
    const std::string name(split(file.path, '/').front());
    const std::string link = directory + "/" + name;
    if (symlink(("..data/" + name).c_str(), link.c_str()) != 0 && errno != EEXIST) {
      return system_failure("linking", link);
    }
  }
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with("..")) continue;
    if (!fs::exists(at->path(), error)) fs::remove(at->path(), error);
  }
  return {};
}

Result<> exchange_files(const Volume& volume) {
  const std::string data = volume.source + "/..data";
  if (auto made = make_directory(volume.source, 0755); !made) return made;
  std::error_code error;
  const std::string old = fs::read_symlink(data, error).string();
  if (!old.empty() && holds(volume.source + "/" + old, volume.files)) return {};

  std::string fresh = volume.source + "/..data-XXXXXX";
  if (mkdtemp(fresh.data()) == nullptr) return system_failure("making", fresh);
  chmod(fresh.c_str(), 0755);
  if (auto done = write_files(fresh, volume.files); !done) return done;
  const std::string next = volume.source + "/..data_tmp";
  unlink(next.c_str());
  if (symlink(fs::path(fresh).filename().c_str(), next.c_str()) != 0 ||
      rename(next.c_str(), data.c_str()) != 0) {
    return system_failure("linking", data);
  }
  if (auto done = link_names(volume.source, volume.files); !done) return done;
  if (!old.empty()) fs::remove_all(volume.source + "/" + old, error);
  return {};
}

Result<> check_host_path(const Volume& volume) {
  const std::string& path = volume.source;
  const std::string& type = volume.host_type;
  if (type == "DirectoryOrCreate") return make_directory(path, 0755);
  if (type == "FileOrCreate") {
    const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!fd) return system_failure("making", path);
    return {};
  }
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) {
    return fail(Reason::kNotFound, "hostPath {}: {}", path, std::strerror(errno));
  }
  const bool is_right = type.empty() || (type == "Directory" && S_ISDIR(info.st_mode)) ||
                        (type == "File" && S_ISREG(info.st_mode)) ||
                        (type == "Socket" && S_ISSOCK(info.st_mode)) ||
                        (type == "CharDevice" && S_ISCHR(info.st_mode)) ||
                        (type == "BlockDevice" && S_ISBLK(info.st_mode));
  if (is_right) return {};
  return fail(Reason::kInvalid, "hostPath type check failed: {} is not a {}", path, type);
}

Result<> make_shared_directory(const Volume& volume) {
  if (auto made = make_directory(volume.source, 0777); !made || !volume.group) return made;
  if (chown(volume.source.c_str(), static_cast<uid_t>(-1), *volume.group) != 0 ||
      chmod(volume.source.c_str(), 02777) != 0) {
    return system_failure("giving away", volume.source);
  }
  return {};
}

Result<> make_volume(const Volume& volume) {
  switch (volume.kind) {
    case Volume::Kind::kDirectory:
      return make_shared_directory(volume);
    case Volume::Kind::kMemory:
    case Volume::Kind::kShm:
      return make_directory(volume.source, 0777);
    case Volume::Kind::kHost:
      return check_host_path(volume);
    case Volume::Kind::kFiles:
      return exchange_files(volume);
  }
  return {};
}

}  // namespace

Result<> make_volumes(const std::vector<Volume>& volumes) {
  for (const Volume& volume : volumes) {
    if (auto made = make_volume(volume); !made) {
      return fail_in(fmt::format("MountVolume.SetUp failed for volume \"{}\" ", volume.name),
                     made.error());
    }
  }
  return {};
}

}  // namespace grapnel::local::kubelet
