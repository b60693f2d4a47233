// YAML: what is read can be printed and read back.
#include "document/yaml.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto documents = parse_yaml(fuzz::text_of(data, size));
  if (!documents) return 0;
  for (const YamlDocument& document : *documents) {
    document.positions.find("spec.containers[0].name");
    const auto again = parse_yaml(to_yaml(document.value));
    fuzz::require(again && again->size() == 1, "what is printed is one document");
    fuzz::require(equal(again->front().value, document.value), "what is printed reads back");
  }
  return 0;
}
