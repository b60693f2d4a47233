// grapnel-shim: a program of its own so that a pod costs little memory. Started by grapnel only:
//   grapnel-shim pod|anchor|sweep CONFIG_FD [what ps shall show]
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "local/node/shim/launch.h"
#include "local/node/shim/util.h"

int main(int count, char** arguments) {
  using namespace grapnel::local::shim;
  if (count < 3) {
    fputs("grapnel-shim is started by grapnel, not by hand\n", stderr);
    return 64;
  }
  prctl(PR_SET_NAME, "grapnel-shim");
  Buffer config;
  if (!read_all(atoi(arguments[2]), config)) return 65;
  const std::string_view role = arguments[1];
  if (role == "sweep") return sweep(config.view());
  return role == "anchor" ? launch_anchor(config.view()) : launch_pod(config.view());
}
