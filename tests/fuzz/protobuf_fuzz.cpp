// Kubernetes' protobuf bodies: whatever comes, the answer is an object or an error; and an object
// that can be written as one says the same when it is read again.
#include "kube/types/protobuf.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto decoded = kube::decode_protobuf(fuzz::text_of(data, size));
  if (!decoded) return 0;
  fuzz::require(decoded->is_object(), "a body is an object");
  const auto again = parse_json(to_text(*decoded));
  fuzz::require(again.has_value(), "what was decoded can be written");
  const auto body = kube::encode_protobuf(*decoded);
  if (!body) return 0;
  const auto arrived = kube::decode_protobuf(*body);
  fuzz::require(arrived.has_value(), "what was encoded can be read");
  fuzz::require(equal(*arrived, *decoded), "what was encoded arrives whole");
  return 0;
}
