// The manifest that a person writes: a fault is an error with a place, never a crash.
#include "operators/experiment/manifest.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto manifest = experiment::parse_manifest(fuzz::text_of(data, size), "manifest.yaml");
  if (manifest) {
    const Json resource = experiment::experiment_of(*manifest, "name", "default");
    fuzz::require(resource.is_object(), "a manifest becomes a resource");
  } else {
    fuzz::require(!manifest.error().message.empty(), "a fault has words");
  }
  return 0;
}
