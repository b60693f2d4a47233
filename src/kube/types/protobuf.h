// Kubernetes' protobuf: objects of built-in kinds as its own clients send and receive them. To the
// API server they are several times lighter than JSON. Everybody else here speaks JSON, so this
// turns one into the other, by the tables of type_info.h.
//
// What we receive is only read; broken bytes are an error. What we send must arrive complete: an
// object with a field that the tables do not know is sent as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "document/json.h"

namespace grapnel::kube {

inline constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";

struct ProtobufOptions {
  bool managed_fields = true;  // false: without metadata.managedFields, often half of an object
};

// A body of that type (four magic bytes, then an envelope that names the kind) as JSON text. The
// text is not fully checked (UTF-8, depth, members that occur twice), so parse it. Kinds without a
// table are refused.
Result<std::string> json_of_protobuf(std::string_view body, ProtobufOptions options = {});
Result<Json> decode_protobuf(std::string_view body);
// One frame of a watch.
Result<std::string> json_of_watch_event(std::string_view frame, ProtobufOptions options = {});

// Nothing: send it as JSON, and let the server judge it.
std::optional<std::string> encode_protobuf(const Json& object);

}  // namespace grapnel::kube
