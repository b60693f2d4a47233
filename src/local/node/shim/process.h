// The last steps before a program runs: becoming the process that a container or an exec asks for.
// Everything here runs in a new child of the shim. The child reports over a socket its PID as the
// host sees it, the master of its terminal, or why it failed. When the socket closes, the program
// runs.
#pragma once

#include <string_view>

namespace grapnel::local::shim {

struct Stdio {
  int in = -1;  // -1: /dev/null
  int out = -1;
  int error = -1;
};

enum class ChildReport : char { kHostPid = 'p', kTerminal = 't', kFailure = 'f' };

// In the child of a container: builds the root from `spec` and runs what it asks for.
[[noreturn]] void run_container(std::string_view spec, Stdio stdio, int report);
// In a child of the shim: joins the container whose first process `pidfd` means.
[[noreturn]] void run_exec(std::string_view spec, Stdio stdio, int report, int pidfd, bool join);

}  // namespace grapnel::local::shim
