// Where a laptop cluster keeps its files: one folder for each name below the user's state
// directory, readable by that user only.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace grapnel::cli {

struct ClusterPaths {
  std::filesystem::path root;
  std::filesystem::path kubeconfig() const { return root / "kubeconfig"; }
  std::filesystem::path data() const { return root / "data"; }
  std::filesystem::path node() const { return root / "node"; }
  std::filesystem::path pid() const { return root / "pid"; }
  std::filesystem::path log() const { return root / "log"; }
};

// $XDG_STATE_HOME/grapnel/NAME, or ~/.local/state/grapnel/NAME. A name is a DNS label.
Result<ClusterPaths> cluster_paths(std::string_view name);

// The process that holds the cluster; nothing when none is alive.
std::optional<int> running_pid(const ClusterPaths& paths);

// Whole or not at all, private to the user.
Result<> write_private_file(const std::filesystem::path& path, std::string_view text);
Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace grapnel::cli
