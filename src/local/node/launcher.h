// Starts the shim program and waits for its report.
#pragma once

#include <string>
#include <vector>

#include "base/async.h"
#include "base/result.h"

namespace grapnel::local {

struct Launch {
  std::string program;
  std::string role;    // pod, anchor, sweep
  std::string title;   // for ps
  std::string config;  // fields of shim_protocol.h; kReportFd is added
  // Open files that the config names by their number in the shim: the first is kFirstLaunchFd.
  std::vector<int> fds;
};
inline constexpr int kFirstLaunchFd = 5;

// The PID of the process it left behind, 0 if none. Its words where it failed.
Task<Result<int>> launch(Launch what);

// A memfd with these bytes, for the things that are too large for a packet.
Result<int> bytes_as_fd(std::string_view bytes);

}  // namespace grapnel::local
