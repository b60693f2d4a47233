// Kubernetes' protobuf bodies: whatever comes, the answer is an object or an error.
#include "local/apiserver/types/protobuf.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto decoded = local::decode_protobuf(fuzz::text_of(data, size));
  if (!decoded) return 0;
  fuzz::require(decoded->is_object(), "a body is an object");
  const auto again = parse_json(to_text(*decoded));
  fuzz::require(again.has_value(), "what was decoded can be written");
  return 0;
}
