// Validation against a structural schema, in the words of Kubernetes' own validator.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/strings.h"
#include "base/time.h"
#include "document/pattern.h"
#include "local/apiserver/schema.h"

namespace grapnel::local {
namespace {

// The type of a JSON value, in the schema's words.
std::string_view type_name(const Json& value) {
  if (value.is_string()) return "string";
  if (value.is_bool()) return "boolean";
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  if (value.is_null()) return "null";
  if (value.is_double() && value.get_double() != std::floor(value.get_double())) return "number";
  return "integer";
}

double number_of(const Json& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return static_cast<double>(int_or(&value));
}

// As Go's %v prints a float64.
std::string number_text(const Json& limit) {
  return fmt::format("{}", number_of(limit));
}

// As Go's %#v prints decoded JSON.
std::string go_syntax(const Json& value) {
  const JsonObject* object = value.if_object();
  if (object == nullptr) {
    return value.is_string() ? in_quotes(string_or(&value)) : to_text(value);
  }
  std::map<std::string, std::string> members;
  for (const auto& entry : *object) {
    members[in_quotes(std::string_view(entry.key()))] = go_syntax(entry.value());
  }
  std::vector<std::string> parts;
  for (const auto& [name, text] : members) parts.push_back(name + ":" + text);
  return fmt::format("map[string]interface {{}}{{{}}}", fmt::join(parts, ", "));
}

size_t characters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  return count;
}

bool matches_format(std::string_view format, std::string_view text) {
  if (format == "date-time") return parse_time(text).has_value();
  if (format == "duration") return parse_go_duration(text).has_value();
  if (format == "byte") return base64_decode(text).has_value();
  if (format == "uuid") {
    return matches_pattern("^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
                           text);
  }
  if (format == "ipv4") {
    return matches_pattern(R"(^((25[0-5]|2[0-4]\d|1?\d?\d)(\.|$)){4}$)", text);
  }
  if (format == "date") return matches_pattern(R"(^\d{4}-\d{2}-\d{2}$)", text);
  return true;  // unknown formats are not checked
}

class Validator {
 public:
  // `hidden`: how much of each path the sentence leaves out (a status is validated by itself).
  explicit Validator(FieldErrors& errors, size_t hidden = 0) : errors_(errors), hidden_(hidden) {}

  void value(const Json& schema, const Json& value, const std::string& path) {
    if (value.is_null() && bool_or(find(schema, "nullable"))) return;
    if (!check_type(schema, value, path)) return;
    check_enum(schema, value, path);
    if (value.is_string()) check_string(schema, value, path);
    if (value.is_number()) check_number(schema, value, path);
    if (value.is_array()) check_array(schema, value, path);
    if (value.is_object()) check_object(schema, value, path);
    check_junctors(schema, value, path);
  }

 private:
  // "spec.replicas in body should …": the validator's way to name a field.
  void invalid(const std::string& path, const Json& shown, const std::string& complaint) {
    errors_.invalid_value(field_of(path), shown,
                          fmt::format("{} in body {}", name_of(path), complaint));
  }
  std::string_view name_of(const std::string& path) const {
    return std::string_view(path).substr(std::min(hidden_, path.size()));
  }
  static std::string field_of(const std::string& path) { return path.empty() ? "<nil>" : path; }

  bool check_type(const Json& schema, const Json& value, const std::string& path) {
    if (bool_or(find(schema, "x-kubernetes-int-or-string"))) {
      const std::string_view actual = type_name(value);
      if (actual == "integer" || actual == "string") return true;
      type_error(path, value, "integer,string");
      return false;
    }
    const std::string_view wanted = string_or(find(schema, "type"));
    if (wanted.empty()) return true;
    const std::string_view actual = type_name(value);
    if (wanted == actual || (wanted == "number" && actual == "integer")) return true;
    type_error(path, value, wanted);
    return false;
  }

  void type_error(const std::string& path, const Json& value, std::string_view wanted) {
    const std::string_view actual = type_name(value);
    const Json shown(actual);
    errors_.type_invalid(
        field_of(path), shown,
        fmt::format("{} in body must be of type {}: {}", name_of(path), wanted, in_quotes(actual)));
  }

  void check_enum(const Json& schema, const Json& value, const std::string& path) {
    const Json* allowed = find(schema, "enum");
    if (allowed == nullptr || !allowed->is_array()) return;
    std::vector<std::string> texts;
    for (const Json& one : allowed->as_array()) {
      if (equal(one, value)) return;
      texts.push_back(one.is_string() ? std::string(string_or(&one)) : to_text(one));
    }
    const std::string shown = value.is_string() ? in_quotes(string_or(&value)) : to_text(value);
    std::vector<std::string> quoted_texts;
    for (const std::string& one : texts) quoted_texts.push_back(in_quotes(one));
    errors_.add(Cause{.field = field_of(path),
                      .message = fmt::format("Unsupported value: {}: supported values: {}", shown,
                                             fmt::join(quoted_texts, ", ")),
                      .reason = "FieldValueNotSupported"});
  }

  void check_string(const Json& schema, const Json& value, const std::string& path) {
    const std::string_view text = string_or(&value);
    if (const Json* most = find(schema, "maxLength");
        most != nullptr && characters(text) > static_cast<size_t>(int_or(most))) {
      errors_.too_long(field_of(path), static_cast<size_t>(int_or(most)));
      return;  // one complaint about a string is enough
    }
    if (const Json* least = find(schema, "minLength");
        least != nullptr && characters(text) < static_cast<size_t>(int_or(least))) {
      invalid(path, value, fmt::format("should be at least {} chars long", int_or(least)));
      return;
    }
    const std::string_view pattern = string_or(find(schema, "pattern"));
    if (!pattern.empty() && !matches_pattern(pattern, text)) {
      invalid(path, value, fmt::format("should match '{}'", pattern));
      return;
    }
    const std::string_view format = string_or(find(schema, "format"));
    if (!format.empty() && !matches_format(format, text)) {
      errors_.type_invalid(
          field_of(path), value,
          fmt::format("{} in body must be of type {}: {}", name_of(path), format, in_quotes(text)));
    }
  }

  void check_number(const Json& schema, const Json& value, const std::string& path) {
    const double number = number_of(value);
    if (const Json* most = find(schema, "maximum"); most != nullptr && most->is_number()) {
      const bool open = bool_or(find(schema, "exclusiveMaximum"));
      if (open ? number >= number_of(*most) : number > number_of(*most)) {
        invalid(path, value,
                fmt::format("should be less than {}{}", open ? "" : "or equal to ",
                            number_text(*most)));
      }
    }
    if (const Json* least = find(schema, "minimum"); least != nullptr && least->is_number()) {
      const bool open = bool_or(find(schema, "exclusiveMinimum"));
      if (open ? number <= number_of(*least) : number < number_of(*least)) {
        invalid(path, value,
                fmt::format("should be greater than {}{}", open ? "" : "or equal to ",
                            number_text(*least)));
      }
    }
    if (const Json* factor = find(schema, "multipleOf"); factor != nullptr && factor->is_number()) {
      const double quotient = number / number_of(*factor);
      if (quotient != std::floor(quotient)) {
        invalid(path, value, fmt::format("should be a multiple of {}", number_text(*factor)));
      }
    }
  }

  void check_array(const Json& schema, const Json& value, const std::string& path) {
    const JsonArray& array = value.as_array();
    if (const Json* most = find(schema, "maxItems");
        most != nullptr && array.size() > static_cast<size_t>(int_or(most))) {
      errors_.too_many(field_of(path), array.size(), static_cast<size_t>(int_or(most)));
    }
    if (const Json* least = find(schema, "minItems");
        least != nullptr && array.size() < static_cast<size_t>(int_or(least))) {
      invalid(path, Json(array.size()),
              fmt::format("should have at least {} items", int_or(least)));
    }
    check_list_type(schema, array, path);
    const Json* items = find(schema, "items");
    if (items == nullptr || !items->is_object()) return;
    size_t index = 0;
    for (const Json& element : array) {
      this->value(*items, element, fmt::format("{}[{}]", path, index++));
    }
  }

  // Sets hold each value once, maps each key.
  void check_list_type(const Json& schema, const JsonArray& array, const std::string& path) {
    const std::string_view type = string_or(find(schema, "x-kubernetes-list-type"));
    if (type != "set" && type != "map") return;
    const Json* keys = find(schema, "x-kubernetes-list-map-keys");
    std::set<std::string> seen;
    size_t index = 0;
    for (const Json& element : array) {
      Json identity = element;
      if (type == "map") {
        JsonObject key;
        if (keys != nullptr && keys->is_array()) {
          for (const Json& name : keys->as_array()) {
            if (const Json* part = find(element, string_or(&name))) key[string_or(&name)] = *part;
          }
        }
        identity = std::move(key);
      }
      if (!seen.insert(to_text(identity)).second) {
        errors_.add(Cause{.field = fmt::format("{}[{}]", path, index),
                          .message = fmt::format("Duplicate value: {}", go_syntax(identity)),
                          .reason = "FieldValueDuplicate"});
      }
      ++index;
    }
  }

  void check_object(const Json& schema, const Json& value, const std::string& path) {
    const JsonObject& object = value.as_object();
    if (const Json* most = find(schema, "maxProperties");
        most != nullptr && object.size() > static_cast<size_t>(int_or(most))) {
      errors_.too_many(field_of(path), object.size(), static_cast<size_t>(int_or(most)));
    }
    if (const Json* least = find(schema, "minProperties");
        least != nullptr && object.size() < static_cast<size_t>(int_or(least))) {
      invalid(path, Json(object.size()),
              fmt::format("should have at least {} properties", int_or(least)));
    }
    if (const Json* required = find(schema, "required");
        required != nullptr && required->is_array()) {
      for (const Json& name : required->as_array()) {
        if (!object.contains(string_or(&name))) errors_.required(child(path, string_or(&name)));
      }
    }
    if (bool_or(find(schema, "x-kubernetes-embedded-resource"))) check_resource(object, path);
    const Json* properties = find(schema, "properties");
    const Json* additional = find(schema, "additionalProperties");
    for (const auto& entry : object) {
      const std::string_view name(entry.key());
      const Json* inner = properties == nullptr ? nullptr : find(*properties, name);
      if (inner == nullptr && additional != nullptr && additional->is_object()) inner = additional;
      if (inner != nullptr) this->value(*inner, entry.value(), child(path, name));
    }
  }

  // An embedded object must have kind and apiVersion.
  void check_resource(const JsonObject& object, const std::string& path) {
    for (const char* name : {"apiVersion", "kind"}) {
      if (string_or(object.if_contains(name)).empty()) {
        errors_.required(child(path, name), "must not be empty");
      }
    }
  }

  static std::string child(const std::string& path, std::string_view name) {
    return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
  }

  bool accepts(const Json& schema, const Json& value, const std::string& path) const {
    FieldErrors found;
    Validator(found).value(schema, value, path);
    return found.empty();
  }

  void check_junctors(const Json& schema, const Json& value, const std::string& path) {
    if (const Json* all = find(schema, "allOf"); all != nullptr && all->is_array()) {
      for (const Json& one : all->as_array()) this->value(one, value, path);
    }
    if (const Json* any = find(schema, "anyOf"); any != nullptr && any->is_array()) {
      bool good = false;
      for (const Json& one : any->as_array()) good = good || accepts(one, value, path);
      if (!good) {
        errors_.invalid(
            field_of(path), "",
            fmt::format("{} in body must validate at least one schema (anyOf)", in_quotes(path)));
      }
    }
    if (const Json* exactly = find(schema, "oneOf"); exactly != nullptr && exactly->is_array()) {
      size_t good = 0;
      for (const Json& one : exactly->as_array()) good += accepts(one, value, path) ? 1 : 0;
      if (good != 1) {
        errors_.invalid(
            field_of(path), "",
            fmt::format(
                "{} in body must validate one and only one schema (oneOf). {}", in_quotes(path),
                good == 0 ? "Found none valid" : fmt::format("Found {} valid alternatives", good)));
      }
    }
    if (const Json* no = find(schema, "not"); no != nullptr && no->is_object()) {
      if (accepts(*no, value, path)) {
        errors_.invalid(
            field_of(path), "",
            fmt::format("{} in body must not validate the schema (not)", in_quotes(path)));
      }
    }
  }

  FieldErrors& errors_;
  size_t hidden_;
};

}  // namespace

void validate_schema(const Json& schema, const Json& object, FieldErrors& errors) {
  Validator(errors).value(schema, object, "");
}

void validate_status(const Json& schema, const Json& object, FieldErrors& errors) {
  const Json* inner = at(schema, "properties", "status");
  const Json* status = find(object, "status");
  if (inner == nullptr || status == nullptr) return;
  Validator(errors, std::string_view("status.").size()).value(*inner, *status, "status");
}

}  // namespace grapnel::local
