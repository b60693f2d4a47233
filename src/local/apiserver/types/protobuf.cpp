#include "local/apiserver/types/protobuf.h"

#include <algorithm>
#include <bit>

#include "base/strings.h"
#include "base/time.h"
#include "local/apiserver/types/shapes.h"
#include "local/apiserver/types/wire.h"

namespace grapnel::local {
namespace {

using Form = FieldInfo::Form;
using Shape = FieldInfo::Shape;

constexpr int kMostDepth = 60;
constexpr std::string_view kMagic("k8s\0", 4);

Failure broken(std::string_view where) {
  return fail(Reason::kDecode, "the protobuf body is broken in {}", where);
}

Result<Json> message(const TypeInfo& type, std::string_view bytes, int depth);

// The bytes or the number of one field of a small message.
std::string_view bytes_of(std::string_view message, uint32_t number) {
  WireReader reader(message);
  std::string_view found;
  while (const auto field = reader.next()) {
    if (field->number == number) found = field->bytes;
  }
  return found;
}

uint64_t number_of(std::string_view message, uint32_t number) {
  WireReader reader(message);
  uint64_t found = 0;
  while (const auto field = reader.next()) {
    if (field->number == number) found = field->value;
  }
  return found;
}

Json time_of(std::string_view bytes, bool micro) {
  if (bytes.empty()) return Json();
  const auto whole = static_cast<int64_t>(number_of(bytes, 1));
  const auto nanos = static_cast<int64_t>(number_of(bytes, 2));
  // Year 1 is Go's zero time: no time at all. What lies beyond our calendar is none either.
  constexpr int64_t kFirst = -62135596800;
  constexpr int64_t kLast = 253402300799;
  if (whole <= kFirst || whole > kLast) return Json();
  const Time time{seconds(whole) + microseconds(nanos / 1000 % 1000000)};
  return Json(micro ? format_micro_time(time) : format_time(time));
}

// Go's notation of a duration, for the few fields that have one.
Json duration_of(std::string_view bytes) {
  const auto nanos = static_cast<int64_t>(number_of(bytes, 1));
  const int64_t whole = nanos / 1000000000;
  return Json(fmt::format("{}h{}m{}s", whole / 3600, whole / 60 % 60, whole % 60));
}

Json int_or_string(std::string_view bytes) {
  if (number_of(bytes, 1) == 0) return Json(static_cast<int32_t>(number_of(bytes, 2)));
  return Json(bytes_of(bytes, 3));
}

Result<Json> raw_json(std::string_view bytes) {
  const std::string_view raw = bytes_of(bytes, 1);
  if (raw.empty()) return Json();
  return parse_json(raw);
}

// JSONSchemaPropsOrBool and its relatives: a schema, or the other thing.
Result<Json> schema_or(Form form, std::string_view bytes, int depth) {
  const TypeInfo& schema = shapes::apiextensions_v1_JSONSchemaProps;
  WireReader reader(bytes);
  JsonArray list;
  Json single;
  bool allows = false;
  while (const auto field = reader.next()) {
    const bool is_schema = form == Form::kSchemaOrBool ? field->number == 2 : field->number == 1;
    if (is_schema) {
      auto one = message(schema, field->bytes, depth + 1);
      if (!one) return one;
      single = std::move(*one);
    } else if (form == Form::kSchemaOrBool) {
      allows = field->value != 0;
    } else if (form == Form::kSchemaOrArray) {
      auto one = message(schema, field->bytes, depth + 1);
      if (!one) return one;
      list.push_back(std::move(*one));
    } else {
      list.emplace_back(field->bytes);
    }
  }
  if (!reader.ok()) return broken("a schema");
  if (!single.is_null()) return single;
  if (form == Form::kSchemaOrBool) return Json(allows);
  return Json(std::move(list));
}

Result<Json> value(const FieldInfo& info, const WireField& field, int depth) {
  switch (info.form) {
    case Form::kString:
      return Json(field.bytes);
    case Form::kBool:
      return Json(field.value != 0);
    case Form::kInt32:
      return Json(static_cast<int32_t>(field.value));
    case Form::kInt64:
      return Json(static_cast<int64_t>(field.value));
    case Form::kDouble:
      return Json(std::bit_cast<double>(field.value));
    case Form::kBytes:
      return Json(base64_encode(field.bytes));
    case Form::kMessage:
      return message(*info.type, field.bytes, depth + 1);
    case Form::kTime:
      return time_of(field.bytes, false);
    case Form::kMicroTime:
      return time_of(field.bytes, true);
    case Form::kDuration:
      return duration_of(field.bytes);
    case Form::kQuantity:
      return Json(bytes_of(field.bytes, 1));
    case Form::kIntOrString:
      return int_or_string(field.bytes);
    case Form::kRaw:
      return raw_json(field.bytes);
    case Form::kSchemaOrBool:
    case Form::kSchemaOrArray:
    case Form::kSchemaOrStringArray:
      return schema_or(info.form, field.bytes, depth);
  }
  return Json();
}

// What Go's JSON leaves out: empty values of fields that are no pointers.
bool is_zero(const FieldInfo& info, const Json& value) {
  if (value.is_null()) return true;
  if (info.pointer || info.required) return false;
  if (value.is_string()) return value.get_string().empty();
  if (value.is_bool()) return !value.get_bool();
  if (value.is_int64()) return value.get_int64() == 0;
  if (value.is_double()) return value.get_double() == 0;
  if (value.is_object()) return value.get_object().empty();
  return false;
}

Result<> add_map_entry(JsonObject& out, const FieldInfo& info, std::string_view bytes, int depth) {
  WireReader reader(bytes);
  std::string key;
  Json entry;
  bool set = false;
  while (const auto field = reader.next()) {
    if (field->number == 1) key = field->bytes;
    if (field->number != 2) continue;
    set = true;
    if (info.form == Form::kRaw && info.shape == Shape::kMap) {
      // A map of lists of strings: each list is a message of its own.
      JsonArray texts;
      WireReader inner(field->bytes);
      while (const auto one = inner.next()) texts.emplace_back(one->bytes);
      if (!inner.ok()) return broken(info.name);
      entry = std::move(texts);
      continue;
    }
    auto decoded = value(info, *field, depth);
    if (!decoded) return fail(decoded.error());
    entry = std::move(*decoded);
  }
  if (!reader.ok()) return broken(info.name);
  if (!set) {
    // An empty value is not on the wire.
    if (info.form == Form::kMessage) entry = JsonObject();
    if (info.form == Form::kString || info.form == Form::kBytes) entry = "";
  }
  ensure_object(out, info.name)[key] = std::move(entry);
  return {};
}

Result<> add_element(JsonObject& out, const FieldInfo& info, const WireField& field, int depth) {
  Json& place = out[info.name];
  if (!place.is_array()) place = JsonArray();
  JsonArray& list = place.as_array();
  const bool number = info.form == Form::kInt32 || info.form == Form::kInt64;
  if (number && field.type == WireField::Type::kBytes) {
    WireReader packed(field.bytes);
    while (!packed.at_end()) {
      const auto one = packed.varint();
      if (!one) return broken(info.name);
      list.emplace_back(info.form == Form::kInt32 ? Json(static_cast<int32_t>(*one))
                                                  : Json(static_cast<int64_t>(*one)));
    }
    return {};
  }
  auto decoded = value(info, field, depth);
  if (!decoded) return fail(decoded.error());
  list.push_back(std::move(*decoded));
  return {};
}

bool fits(const FieldInfo& info, const WireField& field) {
  const bool number =
      info.form == Form::kBool || info.form == Form::kInt32 || info.form == Form::kInt64;
  if (info.shape == Shape::kMap) return field.type == WireField::Type::kBytes;
  if (info.form == Form::kDouble) return field.type == WireField::Type::kFixed64;
  if (!number) return field.type == WireField::Type::kBytes;
  return field.type == WireField::Type::kVarint ||
         (info.shape == Shape::kList && field.type == WireField::Type::kBytes);
}

Result<> add_fields(const TypeInfo& type, std::string_view bytes, JsonObject& out, int depth) {
  if (depth > kMostDepth) return fail(Reason::kDecode, "the protobuf body is nested too deeply");
  WireReader reader(bytes);
  while (const auto field = reader.next()) {
    const FieldInfo* info = nullptr;
    for (const FieldInfo& one : type.fields) {
      if (one.number == field->number) info = &one;
    }
    if (info == nullptr) continue;  // from a newer Kubernetes
    if (!fits(*info, *field)) return broken(info->name);
    Result<> done;
    if (info->name.empty()) {
      done = add_fields(*info->type, field->bytes, out, depth + 1);
    } else if (info->shape == Shape::kMap) {
      done = add_map_entry(out, *info, field->bytes, depth);
    } else if (info->shape == Shape::kList) {
      done = add_element(out, *info, *field, depth);
    } else {
      auto decoded = value(*info, *field, depth);
      if (!decoded) return fail(decoded.error());
      if (!is_zero(*info, *decoded)) out[info->name] = std::move(*decoded);
    }
    if (!done) return done;
  }
  if (!reader.ok()) return broken(type.name);
  return {};
}

// Well-formed, shortest form, no surrogates: what JSON can hold.
bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    size_t length = 1;
    if (first >= 0xf0) {
      length = 4;
    } else if (first >= 0xe0) {
      length = 3;
    } else if (first >= 0x80) {
      length = 2;
    }
    if (length > text.size() - i || (first >= 0x80 && first < 0xc2) || first > 0xf4) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    const unsigned char second = length > 1 ? static_cast<unsigned char>(text[i + 1]) : 0;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
      return false;
    }
    i += length;
  }
  return true;
}

// An object with other bytes in it could be stored, and never be read again.
bool is_text(const Json& value) {
  if (value.is_string()) return is_utf8(string_or(&value));
  if (const JsonArray* array = value.if_array()) {
    return std::all_of(array->begin(), array->end(), is_text);
  }
  const JsonObject* object = value.if_object();
  return object == nullptr || std::all_of(object->begin(), object->end(), [](const auto& entry) {
           return is_utf8(entry.key()) && is_text(entry.value());
         });
}

Result<Json> message(const TypeInfo& type, std::string_view bytes, int depth) {
  JsonObject out;
  if (auto done = add_fields(type, bytes, out, depth); !done) return fail(done.error());
  return Json(std::move(out));
}

}  // namespace

Result<Json> decode_message(const TypeInfo& type, std::string_view bytes) {
  return message(type, bytes, 0);
}

Result<Json> decode_protobuf(std::string_view body) {
  if (!body.starts_with(kMagic)) {
    return fail(Reason::kDecode, "provided data does not appear to be a protobuf message");
  }
  WireReader envelope(body.substr(kMagic.size()));
  std::string api_version;
  std::string kind;
  std::string_view raw;
  while (const auto field = envelope.next()) {
    if (field->number == 1) {
      api_version = bytes_of(field->bytes, 1);
      kind = bytes_of(field->bytes, 2);
    }
    if (field->number == 2) raw = field->bytes;
  }
  if (!envelope.ok()) return broken("its envelope");
  const size_t slash = api_version.find('/');
  const std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
  const std::string version =
      slash == std::string::npos ? api_version : api_version.substr(slash + 1);
  const TypeInfo* type = type_of_kind(group, version, kind);
  // Options of requests have the version of the group they are sent to.
  if (type == nullptr && kind == "DeleteOptions") type = &shapes::meta_v1_DeleteOptions;
  if (type == nullptr) {
    return fail(Reason::kDecode, "no kind \"{}\" is registered for version \"{}\" in protobuf",
                kind, api_version);
  }
  auto object = message(*type, raw, 0);
  if (!object) return object;
  JsonObject& fields = object->as_object();
  fields["apiVersion"] = api_version;
  fields["kind"] = kind;
  if (!is_text(*object)) return fail(Reason::kDecode, "a string field contains invalid UTF-8");
  return object;
}

}  // namespace grapnel::local
