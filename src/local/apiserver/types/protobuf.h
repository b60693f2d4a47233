// Kubernetes' protobuf bodies, read into JSON. Clients of the Go kind send them and do not fall
// back; answers are always JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "document/json.h"
#include "local/apiserver/types/type_info.h"

namespace grapnel::local {

// A body of application/vnd.kubernetes.protobuf: the four magic bytes, then an envelope that names
// the kind. Kinds without a table are refused.
Result<Json> decode_protobuf(std::string_view body);
// One message without its envelope.
Result<Json> decode_message(const TypeInfo& type, std::string_view bytes);

}  // namespace grapnel::local
