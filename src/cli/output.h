// Objects as -o asks for them.
#pragma once

#include "cli/options.h"
#include "document/json.h"

namespace grapnel::cli {

inline bool is_document(Output output) {
  return output == Output::kJson || output == Output::kYaml;
}
// As JSON or YAML, to standard output.
void print_document(const Json& value, Output output);

}  // namespace grapnel::cli
