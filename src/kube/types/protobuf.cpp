#include "kube/types/protobuf.h"

#include <fmt/format.h>

#include <bit>

#include "base/strings.h"
#include "base/time.h"
#include "kube/types/shapes.h"
#include "kube/types/wire.h"

namespace grapnel::kube {
namespace {

using Form = FieldInfo::Form;
using Shape = FieldInfo::Shape;

constexpr int kMostDepth = 60;

Failure broken(std::string_view where) {
  return fail(Reason::kDecode, "the protobuf body is broken in {}", where);
}

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

// Empty where there is none.
std::string time_of(std::string_view bytes, bool micro) {
  if (bytes.empty()) return "";
  const auto whole = static_cast<int64_t>(number_of(bytes, 1));
  const auto nanos = static_cast<int64_t>(number_of(bytes, 2));
  // Year 1 is Go's zero time: no time at all. What lies beyond our calendar is none either.
  constexpr int64_t kFirst = -62135596800;
  constexpr int64_t kLast = 253402300799;
  if (whole <= kFirst || whole > kLast) return "";
  const Time time{seconds(whole) + microseconds(nanos / 1000 % 1000000)};
  return micro ? format_micro_time(time) : format_time(time);
}

// Go's notation of a duration, for the few fields that have one.
std::string duration_of(std::string_view bytes) {
  const auto nanos = static_cast<int64_t>(number_of(bytes, 1));
  const int64_t whole = nanos / 1000000000;
  return fmt::format("{}h{}m{}s", whole / 3600, whole / 60 % 60, whole % 60);
}

bool is_number(Form form) {
  return form == Form::kBool || form == Form::kInt32 || form == Form::kInt64;
}

bool fits(const FieldInfo& info, const WireField& field) {
  if (info.shape == Shape::kMap) return field.type == WireField::Type::kBytes;
  if (info.form == Form::kDouble) return field.type == WireField::Type::kFixed64;
  if (!is_number(info.form)) return field.type == WireField::Type::kBytes;
  return field.type == WireField::Type::kVarint ||
         (info.shape == Shape::kList && field.type == WireField::Type::kBytes);
}

// Writes messages as JSON's text.
class Text {
 public:
  Text(std::string& out, ProtobufOptions options) : out_(out), options_(options) {}

  Result<> object(const TypeInfo& type, std::string_view bytes, int depth) {
    out_ += '{';
    bool first = true;
    auto done = members(type, bytes, first, depth);
    out_ += '}';
    return done;
  }

  // Without the brackets around them.
  Result<> members(const TypeInfo& type, std::string_view bytes, bool& first, int depth) {
    if (depth > kMostDepth) return fail(Reason::kDecode, "the protobuf body is nested too deeply");
    uint64_t seen = 0;  // no type has more fields than it has bits
    WireReader reader(bytes);
    while (const auto field = reader.next()) {
      const FieldInfo* info = type.find(field->number);
      if (info == nullptr || is_left_out(*info)) continue;  // from a newer Kubernetes, or unwanted
      const uint64_t bit = uint64_t{1} << (info - type.fields.data());
      const bool again = (seen & bit) != 0;
      seen |= bit;
      if (!fits(*info, *field)) return broken(info->name);
      Result<> done;
      if (info->shape != Shape::kOne) {
        // All of it at its first element, wherever the others are.
        if (!again) done = all_of(*info, *field, reader, first, depth);
      } else if (again) {
        return broken(info->name);
      } else if (info->name.empty()) {
        done = members(*info->type, field->bytes, first, depth + 1);
      } else {
        done = member(*info, *field, first, depth);
      }
      if (!done) return done;
    }
    return reader.ok() ? Result<>() : broken(type.name);
  }

  void text_member(std::string_view name, std::string_view value, bool& first) {
    begin(name, first);
    append_quoted(out_, value);
  }

 private:
  bool is_left_out(const FieldInfo& info) const {
    return !options_.managed_fields && info.name == "managedFields";
  }

  void begin(std::string_view name, bool& first) {
    if (!first) out_ += ',';
    first = false;
    append_quoted(out_, name);
    out_ += ':';
  }

  // Go's JSON leaves out what is empty, but for pointers to it.
  Result<> member(const FieldInfo& info, const WireField& field, bool& first, int depth) {
    const size_t before = out_.size();
    const bool was_first = first;
    begin(info.name, first);
    const size_t place = out_.size();
    auto done = value(info, field, depth);
    const std::string_view written = std::string_view(out_).substr(place);
    const bool is_empty =
        written == "\"\"" || written == "0" || written == "false" || written == "{}";
    if (written == "null" || (is_empty && !info.pointer && !info.required)) {
      out_.resize(before);
      first = was_first;
    }
    return done;
  }

  Result<> all_of(const FieldInfo& info, const WireField& field, WireReader rest, bool& first,
                  int depth) {
    begin(info.name, first);
    const bool is_map = info.shape == Shape::kMap;
    out_ += is_map ? '{' : '[';
    bool first_element = true;
    std::optional<WireField> next = field;
    do {
      if (next->number != field.number) continue;
      if (!fits(info, *next)) return broken(info.name);
      auto done = is_map ? entry(info, next->bytes, first_element, depth)
                         : elements(info, *next, first_element, depth);
      if (!done) return done;
    } while ((next = rest.next()));
    out_ += is_map ? '}' : ']';
    return {};
  }

  Result<> entry(const FieldInfo& info, std::string_view bytes, bool& first, int depth) {
    WireReader reader(bytes);
    std::string_view key;
    std::optional<WireField> found;
    while (const auto field = reader.next()) {
      if (field->number == 1) key = field->bytes;
      if (field->number == 2) found = field;
    }
    if (!reader.ok()) return broken(info.name);
    begin(key, first);
    if (info.form == Form::kRaw) return list_of_texts(found ? found->bytes : "", info.name);
    // An empty value is not on the wire.
    return value(info, found.value_or(WireField{.type = WireField::Type::kBytes}), depth);
  }

  // Of a map of lists of strings: each list is a message of its own.
  Result<> list_of_texts(std::string_view bytes, std::string_view name) {
    WireReader reader(bytes);
    out_ += '[';
    bool first = true;
    while (const auto one = reader.next()) {
      separate(first);
      append_quoted(out_, one->bytes);
    }
    out_ += ']';
    return reader.ok() ? Result<>() : broken(name);
  }

  Result<> elements(const FieldInfo& info, const WireField& field, bool& first, int depth) {
    if (!is_number(info.form) || field.type != WireField::Type::kBytes) {
      separate(first);
      return value(info, field, depth);
    }
    WireReader packed(field.bytes);
    while (!packed.at_end()) {
      const auto one = packed.varint();
      if (!one) return broken(info.name);
      separate(first);
      number(info.form, *one);
    }
    return {};
  }

  void separate(bool& first) {
    if (!first) out_ += ',';
    first = false;
  }

  void number(Form form, uint64_t value) {
    if (form == Form::kBool) {
      out_ += value != 0 ? "true" : "false";
    } else if (form == Form::kInt32) {
      out_ += fmt::format_int(static_cast<int32_t>(value)).c_str();
    } else {
      out_ += fmt::format_int(static_cast<int64_t>(value)).c_str();
    }
  }

  void text_or_null(std::string_view text) {
    if (text.empty()) {
      out_ += "null";
    } else {
      append_quoted(out_, text);
    }
  }

  Result<> value(const FieldInfo& info, const WireField& field, int depth) {
    switch (info.form) {
      case Form::kString:
        append_quoted(out_, field.bytes);
        return {};
      case Form::kBool:
      case Form::kInt32:
      case Form::kInt64:
        number(info.form, field.value);
        return {};
      case Form::kDouble:
        out_ += to_text(Json(std::bit_cast<double>(field.value)));
        return {};
      case Form::kBytes:
        append_quoted(out_, base64_encode(field.bytes));
        return {};
      case Form::kMessage:
        return object(*info.type, field.bytes, depth + 1);
      case Form::kTime:
      case Form::kMicroTime:
        text_or_null(time_of(field.bytes, info.form == Form::kMicroTime));
        return {};
      case Form::kDuration:
        append_quoted(out_, duration_of(field.bytes));
        return {};
      case Form::kQuantity:
        append_quoted(out_, bytes_of(field.bytes, 1));
        return {};
      case Form::kIntOrString:
        if (number_of(field.bytes, 1) == 0) {
          number(Form::kInt32, number_of(field.bytes, 2));
        } else {
          append_quoted(out_, bytes_of(field.bytes, 3));
        }
        return {};
      case Form::kRaw:
        return raw(field.bytes);
      case Form::kSchemaOrBool:
      case Form::kSchemaOrArray:
      case Form::kSchemaOrStringArray:
        return schema_or(info.form, field.bytes, depth);
    }
    return {};
  }

  // JSON in the middle of it. It must be whole, or what follows would be read differently.
  Result<> raw(std::string_view bytes) {
    const std::string_view text = bytes_of(bytes, 1);
    const auto parsed = text.empty() ? Json() : parse_json(text);
    if (!parsed) return fail(parsed.error());
    out_ += to_text(*parsed);
    return {};
  }

  // JSONSchemaPropsOrBool and its relatives: a schema, or the other thing.
  Result<> schema_or(Form form, std::string_view bytes, int depth) {
    const TypeInfo& schema = shapes::apiextensions_v1_JSONSchemaProps;
    const bool or_bool = form == Form::kSchemaOrBool;
    WireReader reader(bytes);
    std::optional<std::string_view> single;
    std::vector<std::string_view> list;
    bool allows = false;
    while (const auto field = reader.next()) {
      if (field->number == (or_bool ? 2 : 1)) {
        single = field->bytes;
      } else if (or_bool) {
        allows = field->value != 0;
      } else {
        list.push_back(field->bytes);
      }
    }
    if (!reader.ok()) return broken("a schema");
    if (single) return object(schema, *single, depth + 1);
    if (or_bool) {
      number(Form::kBool, allows ? 1 : 0);
      return {};
    }
    out_ += '[';
    bool first = true;
    for (const std::string_view one : list) {
      separate(first);
      if (form == Form::kSchemaOrStringArray) {
        append_quoted(out_, one);
      } else if (auto done = object(schema, one, depth + 1); !done) {
        return done;
      }
    }
    out_ += ']';
    return {};
  }

  std::string& out_;
  ProtobufOptions options_;
};

// What a body says of itself, and the rest of it.
struct Envelope {
  std::string_view api_version;
  std::string_view kind;
  std::string_view raw;
};

Result<Envelope> open(std::string_view body) {
  if (!body.starts_with(kProtobufMagic)) {
    return fail(Reason::kDecode, "provided data does not appear to be a protobuf message");
  }
  WireReader reader(body.substr(kProtobufMagic.size()));
  Envelope envelope;
  while (const auto field = reader.next()) {
    if (field->number == 1) {
      envelope.api_version = bytes_of(field->bytes, 1);
      envelope.kind = bytes_of(field->bytes, 2);
    }
    if (field->number == 2) envelope.raw = field->bytes;
  }
  if (!reader.ok()) return broken("its envelope");
  return envelope;
}

const TypeInfo* type_of(const Envelope& envelope) {
  if (const TypeInfo* type = type_of_kind(envelope.api_version, envelope.kind)) return type;
  // Options of requests have the version of the group they are sent to.
  if (envelope.kind == "DeleteOptions") return &shapes::meta_v1_DeleteOptions;
  if (envelope.kind == "Status") return &shapes::meta_v1_Status;
  return nullptr;
}

Result<> append_json(std::string& out, std::string_view body, ProtobufOptions options) {
  const auto envelope = open(body);
  if (!envelope) return fail(envelope.error());
  const TypeInfo* type = type_of(*envelope);
  if (type == nullptr) {
    return fail(Reason::kDecode, "no kind \"{}\" is registered for version \"{}\" in protobuf",
                envelope->kind, envelope->api_version);
  }
  Text text(out, options);
  bool first = true;
  out += '{';
  text.text_member("kind", envelope->kind, first);
  text.text_member("apiVersion", envelope->api_version, first);
  auto done = text.members(*type, envelope->raw, first, 0);
  out += '}';
  return done;
}

}  // namespace

Result<std::string> json_of_protobuf(std::string_view body, ProtobufOptions options) {
  std::string out;
  if (auto done = append_json(out, body, options); !done) return fail(std::move(done.error()));
  return out;
}

Result<Json> decode_protobuf(std::string_view body) {
  const auto text = json_of_protobuf(body);
  if (!text) return fail(text.error());
  auto object = parse_json(*text);
  if (!object) {
    return fail(Reason::kDecode,
                "a string field contains invalid UTF-8, or the protobuf body is nested too deeply");
  }
  return object;
}

Result<std::string> json_of_watch_event(std::string_view frame, ProtobufOptions options) {
  const std::string_view type = bytes_of(frame, 1);
  const std::string_view object = bytes_of(bytes_of(frame, 2), 1);
  std::string out = "{\"type\":";
  out.reserve(2 * frame.size());
  append_quoted(out, type);
  out += ",\"object\":";
  if (auto done = append_json(out, object, options); !done) return fail(std::move(done.error()));
  out += '}';
  return out;
}

}  // namespace grapnel::kube
