#include "document/yaml.h"

#include <simdjson.h>
#include <yaml.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "base/strings.h"
#include "document/json_extent.h"
#include "document/yaml_scalar.h"

namespace grapnel {
namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

std::string_view text_of(const yaml_char_t* text) {
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

Position position_of(const yaml_mark_t& mark) {
  return {.line = static_cast<int>(mark.line) + 1, .column = static_cast<int>(mark.column) + 1};
}

template <class... Args>
Failure fail_at(const yaml_mark_t& mark, fmt::format_string<Args...> text, Args&&... args) {
  const Position at = position_of(mark);
  return fail(Reason::kDecode, "line {}, column {}: {}", at.line, at.column,
              fmt::format(text, std::forward<Args>(args)...));
}

// JSON has one kind of number, and Kubernetes reads 1.0 and 1e3 back as integers.
Json json_number(double value) {
  if (std::trunc(value) == value && std::fabs(value) < 0x1p63) {
    return static_cast<int64_t>(value);
  }
  return value;
}

class Reader {
 public:
  explicit Reader(std::string_view text) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  ~Reader() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  Reader(const Reader&) = delete;

  Result<std::vector<YamlDocument>> read_stream();

 private:
  // An anchor is known from the start of its node, as an alias inside of it must be refused.
  struct Anchor {
    bool whole = false;
    Json value;
    JsonExtent extent;
  };

  Result<> advance();
  Result<YamlDocument> read_document();
  Result<Json> read_node(size_t depth);
  Result<Json> read_content(size_t depth);
  Result<Json> read_alias(size_t depth);
  Result<Json> read_scalar();
  Result<Json> read_sequence(size_t depth);
  Result<Json> read_mapping(size_t depth);
  Result<> read_member(JsonObject& object, std::set<std::string>& merged, size_t depth);
  Result<> merge_into(JsonObject& object, std::set<std::string>& merged, size_t depth);
  Result<YamlScalar> resolve() const;
  Result<std::string> read_key();
  bool is_merge_key() const;
  Result<> spend(size_t bytes);
  void note_position();

  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::map<std::string, std::shared_ptr<Anchor>, std::less<>> anchors_;
  size_t copied_ = 0;  // bytes that anchors and aliases have cost
  std::string path_;
  size_t noted_ = 0;  // bytes of paths
  Positions positions_;
};

Result<> Reader::advance() {
  yaml_event_delete(&event_);
  if (yaml_parser_parse(&parser_, &event_) != 0) return {};
  event_ = {};
  const bool scanned = parser_.error == YAML_SCANNER_ERROR || parser_.error == YAML_PARSER_ERROR;
  const std::string_view problem = parser_.problem == nullptr ? "malformed" : parser_.problem;
  return fail_at(scanned ? parser_.problem_mark : parser_.mark, "{}", problem);
}

Result<std::vector<YamlDocument>> Reader::read_stream() {
  std::vector<YamlDocument> documents;
  for (;;) {
    if (auto next = advance(); !next) return fail(std::move(next.error()));
    if (event_.type == YAML_STREAM_END_EVENT) return documents;
    if (event_.type != YAML_DOCUMENT_START_EVENT) continue;
    auto document = read_document();
    if (!document) return fail(std::move(document.error()));
    if (!document->value.is_null()) documents.push_back(std::move(*document));
  }
}

Result<YamlDocument> Reader::read_document() {
  anchors_.clear();
  positions_ = {};
  path_.clear();
  if (auto next = advance(); !next) return fail(std::move(next.error()));
  note_position();
  auto value = read_node(1);
  if (!value) return fail(std::move(value.error()));
  return YamlDocument{.value = std::move(*value), .positions = std::move(positions_)};
}

// The node whose first event is the current one; its last event is the current one afterwards.
Result<Json> Reader::read_node(size_t depth) {
  if (event_.type == YAML_ALIAS_EVENT) return read_alias(depth);
  std::string_view name;
  if (event_.type == YAML_SCALAR_EVENT) name = text_of(event_.data.scalar.anchor);
  if (event_.type == YAML_SEQUENCE_START_EVENT) name = text_of(event_.data.sequence_start.anchor);
  if (event_.type == YAML_MAPPING_START_EVENT) name = text_of(event_.data.mapping_start.anchor);
  if (name.empty()) return read_content(depth);

  const auto anchor = std::make_shared<Anchor>();
  anchors_[std::string(name)] = anchor;
  auto value = read_content(depth);
  if (!value) return value;
  anchor->extent = extent_of(*value);
  if (auto affordable = spend(anchor->extent.bytes); !affordable) {
    return fail(std::move(affordable.error()));
  }
  anchor->value = *value;
  anchor->whole = true;
  return value;
}

Result<Json> Reader::read_content(size_t depth) {
  const bool nests =
      event_.type == YAML_SEQUENCE_START_EVENT || event_.type == YAML_MAPPING_START_EVENT;
  if (nests && depth > kMaxJsonDepth) {
    return fail_at(event_.start_mark, "nested deeper than {}", kMaxJsonDepth);
  }
  switch (event_.type) {
    case YAML_SCALAR_EVENT:
      return read_scalar();
    case YAML_SEQUENCE_START_EVENT:
      return read_sequence(depth);
    case YAML_MAPPING_START_EVENT:
      return read_mapping(depth);
    default:
      return fail_at(event_.start_mark, "a value was expected");
  }
}

Result<Json> Reader::read_alias(size_t depth) {
  const std::string_view name = text_of(event_.data.alias.anchor);
  const auto found = anchors_.find(name);
  if (found == anchors_.end()) {
    return fail_at(event_.start_mark, "unknown anchor '{}' referenced", name);
  }
  const Anchor& anchor = *found->second;
  if (!anchor.whole) {
    return fail_at(event_.start_mark, "anchor '{}' value contains itself", name);
  }
  if (depth - 1 + anchor.extent.height > kMaxJsonDepth) {
    return fail_at(event_.start_mark, "nested deeper than {}", kMaxJsonDepth);
  }
  if (auto affordable = spend(anchor.extent.bytes); !affordable) {
    return fail(std::move(affordable.error()));
  }
  return anchor.value;
}

Result<> Reader::spend(size_t bytes) {
  copied_ += bytes;
  if (copied_ <= kMaxYamlSize) return {};
  return fail_at(event_.start_mark, "anchors and aliases make the document too large");
}

// The current scalar with its tag, if it has one, taken into account.
Result<YamlScalar> Reader::resolve() const {
  const auto& scalar = event_.data.scalar;
  const std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
  std::string_view tag = text_of(scalar.tag);
  if (tag.empty()) {
    return scalar.plain_implicit != 0 ? resolve_yaml_scalar(text) : YamlScalar{.value = Json(text)};
  }
  if (tag.starts_with(kTagPrefix)) tag.remove_prefix(kTagPrefix.size());
  if (tag == "binary") {
    const auto bytes = base64_decode(text);
    if (!bytes || !simdjson::validate_utf8(*bytes)) {
      return fail_at(event_.start_mark, "!!binary value is not the base64 of a text");
    }
    return YamlScalar{.value = Json(*bytes)};
  }
  constexpr std::string_view kKnown[] = {"null", "bool", "int", "float", "timestamp"};
  if (std::ranges::count(kKnown, tag) == 0) return YamlScalar{.value = Json(text)};
  YamlScalar resolved = resolve_yaml_scalar(text);
  if (tag == "float" && resolved.type == YamlType::kInt) resolved.type = YamlType::kFloat;
  if (to_string(resolved.type).substr(2) != tag) {
    return fail_at(event_.start_mark, "cannot decode {} `{}` as a !!{}", to_string(resolved.type),
                   text.substr(0, 80), tag);
  }
  return resolved;
}

Result<Json> Reader::read_scalar() {
  auto resolved = resolve();
  if (!resolved) return fail(std::move(resolved.error()));
  if (const double* number = resolved->value.if_double()) {
    if (!std::isfinite(*number)) {
      return fail_at(event_.start_mark, "{} has no place in JSON", go_float_text(*number));
    }
    return json_number(*number);
  }
  return std::move(resolved->value);
}

Result<Json> Reader::read_sequence(size_t depth) {
  JsonArray array;
  const size_t path_size = path_.size();
  for (;;) {
    if (auto next = advance(); !next) return fail(std::move(next.error()));
    if (event_.type == YAML_SEQUENCE_END_EVENT) return array;
    path_ += fmt::format("[{}]", array.size());
    note_position();
    auto value = read_node(depth + 1);
    if (!value) return value;
    array.push_back(std::move(*value));
    path_.resize(path_size);
  }
}

Result<Json> Reader::read_mapping(size_t depth) {
  JsonObject object;
  std::set<std::string> merged;  // members that came by << and may still be overridden
  const size_t path_size = path_.size();
  for (;;) {
    if (auto next = advance(); !next) return fail(std::move(next.error()));
    if (event_.type == YAML_MAPPING_END_EVENT) return object;
    auto result =
        is_merge_key() ? merge_into(object, merged, depth) : read_member(object, merged, depth);
    if (!result) return fail(std::move(result.error()));
    path_.resize(path_size);
  }
}

Result<> Reader::read_member(JsonObject& object, std::set<std::string>& merged, size_t depth) {
  const yaml_mark_t mark = event_.start_mark;
  auto key = read_key();
  if (!key) return fail(std::move(key.error()));
  if (merged.erase(*key) == 0 && object.contains(*key)) {
    return fail_at(mark, "key \"{}\" is there twice", *key);
  }
  if (!path_.empty()) path_ += '.';
  path_ += *key;
  note_position();
  if (auto next = advance(); !next) return next;
  auto value = read_node(depth + 1);
  if (!value) return fail(std::move(value.error()));
  object[*key] = std::move(*value);
  return {};
}

// Keys that are not strings become strings, as in kubectl.
Result<std::string> Reader::read_key() {
  if (event_.type == YAML_ALIAS_EVENT) {
    auto value = read_alias(1);
    if (!value) return fail(std::move(value.error()));
    if (value->is_string()) return std::string(string_or(&*value));
    if (value->is_structured() || value->is_null()) {
      return fail_at(event_.start_mark, "an alias that is no text cannot be a key");
    }
    return to_text(*value);
  }
  if (event_.type != YAML_SCALAR_EVENT) {
    return fail_at(event_.start_mark, "a mapping or sequence cannot be a key");
  }
  const yaml_mark_t mark = event_.start_mark;
  auto resolved = resolve();
  if (!resolved) return fail(std::move(resolved.error()));
  if (const auto name = text_of(event_.data.scalar.anchor); !name.empty()) {
    auto& anchor = anchors_[std::string(name)] = std::make_shared<Anchor>();
    *anchor = {.whole = true, .value = resolved->value, .extent = extent_of(resolved->value)};
  }
  const Json& value = resolved->value;
  if (value.is_string()) return std::string(string_or(&value));
  if (value.is_null() || value.is_uint64()) {
    return fail_at(mark, "a key cannot be {}", to_text(value));
  }
  if (value.is_double()) return go_float_text(static_cast<float>(value.get_double()));
  return to_text(value);
}

bool Reader::is_merge_key() const {
  if (event_.type != YAML_SCALAR_EVENT) return false;
  const auto& scalar = event_.data.scalar;
  if (scalar.length != 2 || text_of(scalar.value) != "<<") return false;
  return scalar.plain_implicit != 0 || text_of(scalar.tag) == "tag:yaml.org,2002:merge";
}

// << takes over the members of one mapping, or of several, of which the first wins. As in kubectl,
// it overrides what is above it in the same mapping, and is overridden by what is below.
Result<> Reader::merge_into(JsonObject& object, std::set<std::string>& merged, size_t depth) {
  const yaml_mark_t mark = event_.start_mark;
  if (auto next = advance(); !next) return next;
  const bool several = event_.type == YAML_SEQUENCE_START_EVENT;
  auto value = read_node(depth + (several ? 0 : 1));
  if (!value) return fail(std::move(value.error()));
  JsonArray sources;
  if (several) {
    sources = std::move(value->get_array());
  } else {
    sources.push_back(std::move(*value));
  }
  for (size_t i = sources.size(); i > 0; --i) {
    JsonObject* source = sources[i - 1].if_object();
    if (source == nullptr) {
      return fail_at(mark, "map merge requires map or sequence of maps as the value");
    }
    for (auto& [key, member] : *source) {
      if (!object.contains(key)) merged.insert(std::string(key));
      object[key] = std::move(member);
    }
  }
  return {};
}

// Paths are long where documents are deep: a hostile document must not make them cost gigabytes.
// What is not noted is found by the place above it.
void Reader::note_position() {
  constexpr size_t kLongest = 4096;
  noted_ += path_.size();
  if (path_.size() > kLongest || noted_ > kMaxYamlSize) return;
  positions_.set(path_, position_of(event_.start_mark));
}

}  // namespace

Position Positions::find(std::string_view path) const {
  for (;;) {
    if (const auto found = positions_.find(path); found != positions_.end()) return found->second;
    if (path.empty()) return {.line = 1, .column = 1};
    const size_t end = path.find_last_of(".[");
    path = path.substr(0, end == std::string_view::npos ? 0 : end);
  }
}

Result<std::vector<YamlDocument>> parse_yaml(std::string_view text) {
  if (text.size() > kMaxYamlSize) {
    return fail(Reason::kDecode, "YAML text of {} bytes is too large (at most {})", text.size(),
                kMaxYamlSize);
  }
  auto documents = Reader(text).read_stream();
  // Not all JSON is YAML 1.1: tabs between tokens, for one.
  if (!documents && trim(text).starts_with('{')) {
    if (auto json = parse_json(text)) {
      documents.emplace();
      documents->push_back({.value = std::move(*json), .positions = {}});
    }
  }
  return documents;
}

}  // namespace grapnel
