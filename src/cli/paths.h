// Where a laptop cluster keeps its files: one folder for each name below the user's state
// directory, readable by that user only.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace grapnel::cli {

struct ClusterPaths {
  std::filesystem::path root;
  std::filesystem::path kubeconfig() const { return root / "kubeconfig"; }
  std::filesystem::path data() const { return root / "data"; }
  std::filesystem::path node() const { return root / "node"; }
  std::filesystem::path pid() const { return root / "pid"; }
  std::filesystem::path log() const { return root / "log"; }
  std::filesystem::path identity() const { return root / "identity"; }
};

// $XDG_STATE_HOME/grapnel/NAME, or ~/.local/state/grapnel/NAME. A name is a DNS label.
// The folder is made.
Result<ClusterPaths> cluster_paths(std::string_view name);
// The same, and nothing is made.
Result<ClusterPaths> paths_of_cluster(std::string_view name);

// The process that holds the cluster; nothing when none is alive.
std::optional<int> running_pid(const ClusterPaths& paths);
// Makes this process the one, for as long as the file is open.
Result<Fd> hold_pid_file(const ClusterPaths& paths);

// Where the command was called. It may have been deleted meanwhile.
Result<std::string> working_directory();

// Whole or not at all, private to the user.
Result<> write_private_file(const std::filesystem::path& path, std::string_view text);
Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace grapnel::cli
