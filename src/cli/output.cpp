#include "cli/output.h"

#include <iostream>

#include "document/yaml.h"

namespace grapnel::cli {

void print_document(const Json& value, Output output) {
  std::cout << (output == Output::kJson ? to_pretty_text(value) + "\n" : to_yaml(value));
}

}  // namespace grapnel::cli
