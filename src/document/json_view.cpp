#include "document/json_view.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace grapnel {
namespace {

namespace dom = simdjson::dom;

// A simdjson element is a document and a place in it, as a JsonView is; its header is too heavy to
// be shown to everybody who reads JSON.
struct Words {
  const void* document;
  size_t place;
};
static_assert(sizeof(Words) == sizeof(dom::element));

dom::element element_of(const void* document, size_t place) {
  return std::bit_cast<dom::element>(Words{document, place});
}

template <class Element>
Words words_of(const Element& element) {
  return std::bit_cast<Words>(static_cast<dom::element>(element));
}

std::optional<int64_t> int_of(double value) {
  if (!(value >= -0x1p63 && value < 0x1p63) || std::trunc(value) != value) return std::nullopt;
  return static_cast<int64_t>(value);
}

JsonType type_of(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return JsonType::kNull;
    case boost::json::kind::bool_:
      return JsonType::kBool;
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
      return JsonType::kInt;
    case boost::json::kind::double_:
      return JsonType::kDouble;
    case boost::json::kind::string:
      return JsonType::kString;
    case boost::json::kind::array:
      return JsonType::kArray;
    case boost::json::kind::object:
      return JsonType::kObject;
  }
  return JsonType::kNull;
}

JsonType type_of(dom::element_type type) {
  switch (type) {
    case dom::element_type::NULL_VALUE:
      return JsonType::kNull;
    case dom::element_type::BOOL:
      return JsonType::kBool;
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
      return JsonType::kInt;
    case dom::element_type::DOUBLE:
      return JsonType::kDouble;
    case dom::element_type::STRING:
      return JsonType::kString;
    case dom::element_type::ARRAY:
      return JsonType::kArray;
    case dom::element_type::OBJECT:
      return JsonType::kObject;
  }
  return JsonType::kNull;
}

Json copy_of(dom::element element) {
  switch (element.type()) {
    case dom::element_type::NULL_VALUE:
      return nullptr;
    case dom::element_type::BOOL:
      return element.get_bool().value_unsafe();
    case dom::element_type::INT64:
      return element.get_int64().value_unsafe();
    case dom::element_type::UINT64:
      return element.get_uint64().value_unsafe();
    case dom::element_type::DOUBLE:
      return element.get_double().value_unsafe();
    case dom::element_type::STRING:
      return Json(element.get_string().value_unsafe());
    case dom::element_type::ARRAY: {
      const dom::array array = element.get_array().value_unsafe();
      JsonArray copy;
      copy.reserve(array.size());
      for (const dom::element child : array) copy.push_back(copy_of(child));
      return copy;
    }
    case dom::element_type::OBJECT: {
      const dom::object object = element.get_object().value_unsafe();
      JsonObject copy;
      copy.reserve(object.size());
      for (const dom::key_value_pair member : object) copy[member.key] = copy_of(member.value);
      return copy;
    }
  }
  return nullptr;
}

}  // namespace

std::string_view to_string(JsonType type) {
  switch (type) {
    case JsonType::kNull:
      return "null";
    case JsonType::kBool:
      return "a boolean";
    case JsonType::kInt:
      return "an integer";
    case JsonType::kDouble:
      return "a number";
    case JsonType::kString:
      return "a string";
    case JsonType::kArray:
      return "an array";
    case JsonType::kObject:
      return "an object";
  }
  return "";
}

JsonType JsonView::type() const {
  if (const Json* value = json()) return type_of(*value);
  return type_of(element_of(document_, place_).type());
}

std::optional<bool> JsonView::as_bool() const {
  if (const Json* value = json()) {
    return value->is_bool() ? std::optional(value->get_bool()) : std::nullopt;
  }
  bool result = false;
  if (element_of(document_, place_).get(result) != simdjson::SUCCESS) return std::nullopt;
  return result;
}

std::optional<int64_t> JsonView::as_int() const {
  if (const Json* value = json()) {
    if (value->is_int64()) return value->get_int64();
    if (value->is_double()) return int_of(value->get_double());
    return std::nullopt;
  }
  const dom::element element = element_of(document_, place_);
  if (element.is_double()) return int_of(element.get_double().value_unsafe());
  int64_t result = 0;
  if (element.get(result) != simdjson::SUCCESS) return std::nullopt;
  return result;
}

std::optional<double> JsonView::as_double() const {
  if (const Json* value = json()) {
    if (value->is_double()) return value->get_double();
    if (value->is_int64()) return static_cast<double>(value->get_int64());
    if (value->is_uint64()) return static_cast<double>(value->get_uint64());
    return std::nullopt;
  }
  double result = 0;
  if (element_of(document_, place_).get(result) != simdjson::SUCCESS) return std::nullopt;
  return result;
}

std::optional<std::string_view> JsonView::as_string() const {
  if (const Json* value = json()) {
    return value->is_string() ? std::optional(std::string_view(value->get_string())) : std::nullopt;
  }
  std::string_view result;
  if (element_of(document_, place_).get(result) != simdjson::SUCCESS) return std::nullopt;
  return result;
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  if (const Json* value = json()) {
    const Json* member = grapnel::find(*value, key);
    return member == nullptr ? std::nullopt : std::optional(JsonView(*member));
  }
  dom::object object;
  if (element_of(document_, place_).get(object) != simdjson::SUCCESS) return std::nullopt;
  dom::element member;
  if (object.at_key(key).get(member) != simdjson::SUCCESS) return std::nullopt;
  const Words words = words_of(member);
  return JsonView(words.document, words.place);
}

size_t JsonView::size() const {
  if (const Json* value = json()) {
    if (value->is_object()) return value->get_object().size();
    return value->is_array() ? value->get_array().size() : 0;
  }
  size_t count = 0;
  if (is_object()) {
    for_each_member([&](std::string_view, JsonView) { return ++count > 0; });
  } else {
    for_each_element([&](size_t, JsonView) { return ++count > 0; });
  }
  return count;
}

void JsonView::for_each_member(absl::FunctionRef<bool(std::string_view, JsonView)> f) const {
  if (const Json* value = json()) {
    const JsonObject* object = value->if_object();
    if (object == nullptr) return;
    for (const auto& member : *object) {
      if (!f(member.key(), JsonView(member.value()))) return;
    }
    return;
  }
  dom::object object;
  if (element_of(document_, place_).get(object) != simdjson::SUCCESS) return;
  for (const dom::key_value_pair member : object) {
    const Words words = words_of(member.value);
    if (!f(member.key, JsonView(words.document, words.place))) return;
  }
}

void JsonView::for_each_element(absl::FunctionRef<bool(size_t, JsonView)> f) const {
  size_t index = 0;
  if (const Json* value = json()) {
    const JsonArray* array = value->if_array();
    if (array == nullptr) return;
    for (const Json& element : *array) {
      if (!f(index++, JsonView(element))) return;
    }
    return;
  }
  dom::array array;
  if (element_of(document_, place_).get(array) != simdjson::SUCCESS) return;
  for (const dom::element element : array) {
    const Words words = words_of(element);
    if (!f(index++, JsonView(words.document, words.place))) return;
  }
}

Json JsonView::to_json() const {
  if (const Json* value = json()) return *value;
  return copy_of(element_of(document_, place_));
}

struct JsonParser::Impl {
  // Doubles its memory until the text fits; simdjson alone would grow by what each text needs.
  simdjson::error_code make_room_for(size_t text) {
    const bool enough = parser.capacity() >= text && parser.doc.capacity() >= text;
    if (enough && parser.max_depth() == kMaxJsonDepth) return simdjson::SUCCESS;
    const size_t capacity = std::max({size_t{4096}, text, 2 * parser.capacity()});
    if (const auto error = parser.allocate(capacity, kMaxJsonDepth)) return error;
    return parser.doc.allocate(capacity);
  }

  dom::parser parser{kMaxJsonSize};
  std::vector<char> padded;
  // For texts with numbers that simdjson does not take.
  Json plain;
};

JsonParser::JsonParser() : impl_(std::make_unique<Impl>()) {}
JsonParser::~JsonParser() = default;
JsonParser::JsonParser(JsonParser&&) noexcept = default;
JsonParser& JsonParser::operator=(JsonParser&&) noexcept = default;

Result<JsonView> JsonParser::parse(std::string_view text) {
  // The parser keeps about 14 bytes for each byte of the largest text it has seen. One large object
  // must not cost that forever.
  constexpr size_t kKeep = size_t{1} << 20;
  if (impl_->padded.size() > kKeep && text.size() < impl_->padded.size() / 4) {
    impl_ = std::make_unique<Impl>();
  }
  if (text.size() > kMaxJsonSize) {
    return fail(Reason::kDecode, "JSON text of {} bytes is too large (at most {})", text.size(),
                kMaxJsonSize);
  }
  if (const auto error = impl_->make_room_for(text.size())) {
    return fail(Reason::kDecode, "JSON: {}", simdjson::error_message(error));
  }
  auto& [parser, padded, plain] = *impl_;
  padded.resize(std::max(padded.size(), text.size() + simdjson::SIMDJSON_PADDING));
  std::copy(text.begin(), text.end(), padded.begin());
  std::fill_n(padded.begin() + static_cast<std::ptrdiff_t>(text.size()), simdjson::SIMDJSON_PADDING,
              '\0');
  dom::element root;
  const auto error = parser.parse(padded.data(), text.size(), false).get(root);
  if (error == simdjson::NUMBER_ERROR) {
    // Integers beyond 64 bits: Go writes 1e20 so. Losing an event over that would be worse than a
    // slow parse.
    auto value = parse_json(text);
    if (!value) return fail(std::move(value.error()));
    plain = std::move(*value);
    return JsonView(plain);
  }
  if (error != simdjson::SUCCESS) {
    return fail(Reason::kDecode, "invalid JSON: {}", simdjson::error_message(error));
  }
  const Words words = words_of(root);
  return JsonView(words.document, words.place);
}

}  // namespace grapnel
