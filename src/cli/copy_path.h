// What `grapnel cp` copies from and to: a path of this machine, or one in a process.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace grapnel::cli {

struct CopyPath {
  std::string experiment;  // "": of this machine
  std::string path;
  bool operator==(const CopyPath&) const = default;
};
// "train:/out/model", "train:out", "./here". What has a slash before its colon is a path.
CopyPath parse_copy_path(std::string_view text);

// Exactly one of the two is in an experiment, and neither path is empty.
struct CopyRoute {
  CopyPath from;
  CopyPath to;
  bool into_experiment() const { return !to.experiment.empty(); }
  const std::string& experiment() const {
    return into_experiment() ? to.experiment : from.experiment;
  }
};
Result<CopyRoute> parse_copy_route(std::string_view from, std::string_view to);

// The last part of a path: "b" of "a/b" and of "a/b/"; "." and ".." have none, nor has "/".
std::string base_name(std::string_view path);

}  // namespace grapnel::cli
