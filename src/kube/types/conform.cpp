#include "kube/types/conform.h"

#include <fmt/format.h>

#include <limits>

#include "base/quantity.h"
#include "base/strings.h"
#include "base/time.h"

namespace grapnel::kube {
namespace {

using Form = FieldInfo::Form;
using Shape = FieldInfo::Shape;

std::string_view value_word(const Json& value) {
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  return "number";
}

class Walk {
 public:
  Result<> fields(const TypeInfo& type, JsonObject& object) {
    std::vector<std::string> drop;
    for (auto& entry : object) {
      const std::string_view name(entry.key());
      const FieldInfo* info = type.find(name);
      if (info == nullptr) {
        if (at_root() && (name == "apiVersion" || name == "kind")) continue;
        unknown_.push_back(path_ + (path_.empty() ? "" : ".") + std::string(name));
        drop.emplace_back(name);
        continue;
      }
      const Step step(*this, name, type);
      if (auto done = member(*info, entry.value()); !done) return done;
      if (is_empty(*info, entry.value())) drop.emplace_back(name);
    }
    for (const std::string& name : drop) object.erase(name);
    return {};
  }
  std::vector<std::string> take_unknown() { return std::move(unknown_); }

 private:
  // Where we are, twice: with indexes for unknown fields, without for Go's type errors.
  class Step {
   public:
    Step(Walk& walk, std::string_view name, const TypeInfo& type)
        : walk_(walk), path_(walk.path_.size()), fields_(walk.fields_.size()), type_(walk.type_) {
      if (!walk.path_.empty()) walk.path_ += ".";
      walk.path_ += name;
      if (!walk.fields_.empty()) walk.fields_ += ".";
      walk.fields_ += name;
      walk.type_ = &type;
    }
    ~Step() {
      walk_.path_.resize(path_);
      walk_.fields_.resize(fields_);
      walk_.type_ = type_;
    }
    Step(const Step&) = delete;

   private:
    Walk& walk_;
    size_t path_;
    size_t fields_;
    const TypeInfo* type_;
  };

  bool at_root() const { return type_ == nullptr; }

  static bool is_empty(const FieldInfo& info, const Json& value) {
    if (value.is_null()) return true;
    if (info.required || info.pointer) return false;
    if (info.form == Form::kRaw && info.shape == Shape::kOne) return false;
    if (value.is_string()) return value.get_string().empty();
    if (value.is_bool()) return !value.get_bool();
    if (value.is_int64()) return value.get_int64() == 0;
    if (value.is_array()) return value.get_array().empty();
    // An empty struct is written as {}; an empty map is not written.
    if (value.is_object()) return info.shape == Shape::kMap && value.get_object().empty();
    return false;
  }

  Failure wrong_type(const Json& value, std::string_view wanted) const {
    const std::string_view full = type_ == nullptr ? "" : type_->name;
    const std::string_view name = full.substr(full.rfind('.') + 1);
    std::string word(value_word(value));
    if (word == "number" && wanted.starts_with("int")) word += " " + to_text(value);
    return fail(Reason::kBadRequest,
                "json: cannot unmarshal {} into Go struct field {}.{} of type {}", word, name,
                fields_, wanted);
  }

  Result<> member(const FieldInfo& info, Json& value) {
    if (value.is_null()) return {};
    if (info.shape == Shape::kOne) return single(info, value);
    if (info.shape == Shape::kList) {
      if (!value.is_array()) return wrong_type(value, "[]" + type_word(info));
      size_t index = 0;
      for (Json& element : value.as_array()) {
        const size_t size = path_.size();
        path_ += fmt::format("[{}]", index++);
        if (element.is_null() && info.form == Form::kMessage) element = JsonObject();
        if (element.is_null() && info.form == Form::kString) element = "";
        auto done = single(info, element);
        path_.resize(size);
        if (!done) return done;
      }
      return {};
    }
    if (!value.is_object()) return wrong_type(value, "map[string]" + type_word(info));
    for (auto& entry : value.as_object()) {
      const size_t size = path_.size();
      path_ += "." + std::string(entry.key());
      if (entry.value().is_null() && info.form == Form::kString) entry.value() = "";
      auto done = single(info, entry.value());
      path_.resize(size);
      if (!done) return done;
    }
    return {};
  }

  static std::string type_word(const FieldInfo& info) {
    switch (info.form) {
      case Form::kString:
        return "string";
      case Form::kBool:
        return "bool";
      case Form::kInt32:
        return "int32";
      case Form::kInt64:
        return "int64";
      case Form::kDouble:
        return "float64";
      case Form::kBytes:
        return "[]uint8";
      default:
        break;
    }
    if (info.type == nullptr) return "string";
    // core/v1.PodSpec is v1.PodSpec in Go.
    return std::string(info.type->name.substr(info.type->name.find('/') + 1));
  }

  Result<> single(const FieldInfo& info, Json& value) {
    switch (info.form) {
      case Form::kString:
      case Form::kDuration:
        if (!value.is_string() && !value.is_null()) return wrong_type(value, "string");
        return {};
      case Form::kTime:
      case Form::kMicroTime:
        if (value.is_null()) return {};
        if (!value.is_string()) return wrong_type(value, "string");
        return time(string_or(&value));
      case Form::kBool:
        if (!value.is_bool()) return wrong_type(value, "bool");
        return {};
      case Form::kInt32:
      case Form::kInt64:
        return integer(info, value);
      case Form::kDouble:
        if (!value.is_number()) return wrong_type(value, "float64");
        return {};
      case Form::kBytes:
        if (!value.is_string()) return wrong_type(value, "[]uint8");
        if (!base64_decode(string_or(&value))) {
          return fail(Reason::kBadRequest, "illegal base64 data at input byte 0");
        }
        return {};
      case Form::kQuantity:
        return quantity(value);
      case Form::kIntOrString:
        if (!value.is_string() && !value.is_number()) {
          return wrong_type(value, "intstr.IntOrString");
        }
        return {};
      case Form::kMessage:
        if (!value.is_object()) return wrong_type(value, type_word(info));
        return fields(*info.type, value.as_object());
      default:
        return {};
    }
  }

  Result<> integer(const FieldInfo& info, Json& value) {
    const std::string_view wanted = info.form == Form::kInt32 ? "int32" : "int64";
    if (value.is_double()) {
      const double number = value.get_double();
      if (number != static_cast<double>(static_cast<int64_t>(number))) {
        return wrong_type(value, wanted);
      }
      value = static_cast<int64_t>(number);
    }
    if (!value.is_int64()) return wrong_type(value, wanted);
    const int64_t number = value.get_int64();
    if (info.form == Form::kInt32 && (number > std::numeric_limits<int32_t>::max() ||
                                      number < std::numeric_limits<int32_t>::min())) {
      return wrong_type(value, wanted);
    }
    return {};
  }

  static Result<> time(std::string_view text) {
    if (parse_time(text)) return {};
    return fail(Reason::kBadRequest,
                "parsing time \"{}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{}\" as "
                "\"2006\"",
                text, text);
  }

  static Result<> quantity(Json& value) {
    const std::string text = value.is_string() ? std::string(string_or(&value)) : to_text(value);
    const auto parsed = Quantity::parse(text);
    if (!parsed) {
      return fail(Reason::kBadRequest,
                  "quantities must match the regular expression "
                  "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    }
    value = parsed->text();
    return {};
  }

  std::string path_;
  std::string fields_;
  const TypeInfo* type_ = nullptr;
  std::vector<std::string> unknown_;
};

}  // namespace

Result<std::vector<std::string>> conform(const TypeInfo& type, JsonObject& object) {
  Walk walk;
  if (auto done = walk.fields(type, object); !done) return fail(done.error());
  return walk.take_unknown();
}

}  // namespace grapnel::kube
