// Which processes of an experiment a person wants to hear, and how they are called.
#pragma once

#include <optional>
#include <string>

#include "api/pod.h"
#include "document/pattern.h"
#include "kube/client.h"

namespace grapnel::cli {

struct LogSource {
  std::string name;  // worker-0; worker-1-0 where a component has several Jobs
  int rank = 0;
};
LogSource source_of(const api::Pod& pod);

struct LogFilter {
  std::string role;  // "": all components
  std::optional<int> rank;
  std::optional<Pattern> pattern;  // of lines

  bool takes(const api::Pod& pod) const;
  bool takes_line(std::string_view line) const { return !pattern || pattern->matches(line); }
};

// The pods of that experiment, whatever their state.
kube::ListOptions pods_of(const kube::Key& experiment);
// Whether there is anything to read yet.
bool has_started(const api::Pod& pod);

}  // namespace grapnel::cli
