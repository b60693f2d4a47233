#include <iostream>

#include "cli/commands.h"
#include "cli/output.h"

namespace grapnel::cli {

int version(Output output) {
  if (is_document(output)) {
    print_document(JsonObject{{"version", GRAPNEL_VERSION}}, output);
  } else {
    std::cout << "grapnel " << GRAPNEL_VERSION << "\n";
  }
  return kOk;
}

}  // namespace grapnel::cli
