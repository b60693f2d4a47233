// From JSON to protobuf. Whatever cannot be told in it for certain is left to JSON.
#include <fmt/format.h>

#include <limits>

#include "base/time.h"
#include "kube/types/protobuf.h"
#include "kube/types/type_info.h"
#include "kube/types/wire.h"

namespace grapnel::kube {
namespace {

using Form = FieldInfo::Form;
using Shape = FieldInfo::Shape;

constexpr int kMostDepth = 60;

// Each appends to `out` and says whether it could.
bool append_members(std::string& out, const TypeInfo& type, const JsonObject& object, size_t& known,
                    int depth);

bool append_message(std::string& out, uint32_t number, const TypeInfo& type, const Json& value,
                    int depth) {
  const JsonObject* object = value.if_object();
  if (object == nullptr || depth > kMostDepth) return false;
  std::string inner;
  size_t known = 0;
  if (!append_members(inner, type, *object, known, depth) || known != object->size()) return false;
  append_bytes(out, number, inner);
  return true;
}

bool append_int(std::string& out, uint32_t number, const Json& value, int64_t most) {
  const int64_t* found = value.if_int64();
  if (found == nullptr || *found > most || *found < -most - 1) return false;
  append_number(out, number, static_cast<uint64_t>(*found));
  return true;
}

bool append_text(std::string& out, uint32_t number, const Json& value) {
  const auto* text = value.if_string();
  if (text == nullptr) return false;
  append_bytes(out, number, *text);
  return true;
}

bool append_time(std::string& out, uint32_t number, const Json& value) {
  const auto time = value.is_string() ? parse_time(string_or(&value)) : std::nullopt;
  if (!time) return false;
  std::string inner;
  append_number(inner, 1,
                static_cast<uint64_t>(duration_cast<seconds>(time->time_since_epoch()).count()));
  append_bytes(out, number, inner);
  return true;
}

bool append_quantity(std::string& out, uint32_t number, const Json& value) {
  if (!value.is_string() && !value.is_int64()) return false;
  std::string inner;
  append_bytes(
      inner, 1,
      value.is_string() ? string_or(&value) : std::string_view(std::to_string(value.get_int64())));
  append_bytes(out, number, inner);
  return true;
}

bool append_int_or_text(std::string& out, uint32_t number, const Json& value) {
  std::string inner;
  append_number(inner, 1, value.is_string() ? 1 : 0);
  const bool done = value.is_string()
                        ? append_text(inner, 3, value)
                        : append_int(inner, 2, value, std::numeric_limits<int32_t>::max());
  append_bytes(out, number, inner);
  return done;
}

bool append_value(std::string& out, uint32_t number, const FieldInfo& info, const Json& value,
                  int depth) {
  switch (info.form) {
    case Form::kString:
      return append_text(out, number, value);
    case Form::kBool:
      if (value.is_bool()) append_number(out, number, value.get_bool() ? 1 : 0);
      return value.is_bool();
    case Form::kInt32:
      return append_int(out, number, value, std::numeric_limits<int32_t>::max());
    case Form::kInt64:
      return append_int(out, number, value, std::numeric_limits<int64_t>::max());
    case Form::kMessage:
      return append_message(out, number, *info.type, value, depth + 1);
    case Form::kTime:
      return append_time(out, number, value);
    case Form::kQuantity:
      return append_quantity(out, number, value);
    case Form::kIntOrString:
      return append_int_or_text(out, number, value);
    default:
      return false;  // seldom in what we write
  }
}

bool append_map(std::string& out, const FieldInfo& info, const Json& value, int depth) {
  const JsonObject* object = value.if_object();
  if (object == nullptr) return false;
  std::string inner;
  for (const auto& [key, one] : *object) {
    inner.clear();
    append_bytes(inner, 1, key);
    if (!append_value(inner, 2, info, one, depth)) return false;
    append_bytes(out, info.number, inner);
  }
  return true;
}

bool append_list(std::string& out, const FieldInfo& info, const Json& value, int depth) {
  const JsonArray* array = value.if_array();
  if (array == nullptr) return false;
  for (const Json& one : *array) {
    if (!append_value(out, info.number, info, one, depth)) return false;
  }
  return true;
}

bool append_member(std::string& out, const FieldInfo& info, const Json& value, int depth) {
  if (value.is_null()) return true;
  if (info.number == 0) return false;
  switch (info.shape) {
    case Shape::kMap:
      return append_map(out, info, value, depth);
    case Shape::kList:
      return append_list(out, info, value, depth);
    case Shape::kOne:
      break;
  }
  return append_value(out, info.number, info, value, depth);
}

// `known` counts the members that belong to it, so that none is lost.
bool append_members(std::string& out, const TypeInfo& type, const JsonObject& object, size_t& known,
                    int depth) {
  for (const FieldInfo& info : type.fields) {
    if (info.name.empty()) {
      std::string inner;
      if (!append_members(inner, *info.type, object, known, depth)) return false;
      if (!inner.empty()) append_bytes(out, info.number, inner);
    } else if (const Json* value = object.if_contains(info.name)) {
      ++known;
      if (!append_member(out, info, *value, depth)) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<std::string> encode_protobuf(const Json& object) {
  const JsonObject* members = object.if_object();
  const std::string_view api_version = string_or(find(object, "apiVersion"));
  const std::string_view kind = string_or(find(object, "kind"));
  if (members == nullptr || api_version.empty() || kind.empty()) return std::nullopt;
  const TypeInfo* type = type_of_kind(api_version, kind);
  size_t known = 2;
  std::string raw;
  if (type == nullptr || !append_members(raw, *type, *members, known, 0) ||
      known != members->size()) {
    return std::nullopt;
  }
  std::string type_meta;
  append_bytes(type_meta, 1, api_version);
  append_bytes(type_meta, 2, kind);
  std::string body(kProtobufMagic);
  append_bytes(body, 1, type_meta);
  append_bytes(body, 2, raw);
  return body;
}

}  // namespace grapnel::kube
