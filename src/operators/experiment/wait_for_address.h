// The command of a process, and a wait before it until a name resolves: a pod's name is in the
// cluster's DNS a moment after the pod has started, and some frameworks give up at once.
//
// The image needs /bin/sh, and one of getent, python3, python or nslookup to resolve names with.
// Where it has none of them the command starts without waiting, and the log says so.
#pragma once

#include <string>
#include <string_view>

#include "document/json.h"

namespace grapnel::experiment {

// `wait_for`: the name, in the words of a shell; "": nothing is waited for. The command sees the
// shell that it would see without the wait.
JsonArray command_line(std::string command, std::string_view wait_for);

}  // namespace grapnel::experiment
