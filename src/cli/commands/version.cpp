#include <iostream>

#include "cli/commands.h"
#include "document/json.h"

namespace grapnel::cli {

int version(Output output) {
  if (output == Output::kJson) {
    std::cout << to_pretty_text(JsonObject{{"version", GRAPNEL_VERSION}}) << "\n";
  } else {
    std::cout << "grapnel " << GRAPNEL_VERSION << "\n";
  }
  return kOk;
}

}  // namespace grapnel::cli
