// A read-only view of a JSON value, either inside a simdjson document or of a Json. Decoders are
// written once against this and read both.
//
// A JsonView is two words and owns nothing: it is valid as long as the document it points into.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "document/json.h"

namespace grapnel {

enum class JsonType { kNull, kBool, kInt, kDouble, kString, kArray, kObject };
std::string_view to_string(JsonType type);  // "a string", "an object", as errors say it

class JsonView {
 public:
  JsonView(const Json& value) : document_(&value) {}  // a view of anything that is JSON

  JsonType type() const;
  bool is_null() const { return type() == JsonType::kNull; }
  bool is_object() const { return type() == JsonType::kObject; }
  bool is_array() const { return type() == JsonType::kArray; }

  std::optional<bool> as_bool() const;
  // Also of a double without a fraction; nothing when it does not fit.
  std::optional<int64_t> as_int() const;
  std::optional<double> as_double() const;  // also of an int
  std::optional<std::string_view> as_string() const;

  // The member of that name; nothing when this is no object or has no such member.
  std::optional<JsonView> find(std::string_view key) const;
  size_t size() const;  // members or elements; 0 for all else
  // In document order. A callback that returns false ends the walk.
  void for_each_member(absl::FunctionRef<bool(std::string_view key, JsonView value)> f) const;
  void for_each_element(absl::FunctionRef<bool(size_t index, JsonView value)> f) const;

  Json to_json() const;  // a copy that owns its content

 private:
  friend class JsonParser;
  static constexpr size_t kJson = SIZE_MAX;
  JsonView(const void* document, size_t place) : document_(document), place_(place) {}

  const Json* json() const {
    return place_ == kJson ? static_cast<const Json*>(document_) : nullptr;
  }

  const void* document_;  // a Json, or the simdjson document
  size_t place_ = kJson;  // in the simdjson document
};

// Parses text into views, reusing its memory from document to document. The views of one document
// are gone with the next parse().
class JsonParser {
 public:
  JsonParser();
  ~JsonParser();
  JsonParser(JsonParser&&) noexcept;
  JsonParser& operator=(JsonParser&&) noexcept;
  Result<JsonView> parse(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grapnel
