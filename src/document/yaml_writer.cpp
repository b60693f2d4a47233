#include <yaml.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "document/yaml.h"
#include "document/yaml_scalar.h"

namespace grapnel {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Letters sort after everything else; of other scripts all are taken for letters.
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

// A number that starts there; how many digits it has, and its value (which may wrap around).
std::pair<size_t, uint64_t> number_at(std::string_view text, size_t at, uint64_t value) {
  size_t end = at;
  for (; end < text.size() && is_digit(text[end]); ++end) {
    value = value * 10 + static_cast<uint64_t>(text[end] - '0');
  }
  return {end, value};
}

// The order of keys in kubectl's output: numbers inside names by their value, so item2 < item10.
bool natural_less(std::string_view a, std::string_view b) {
  const auto [x, y] = std::ranges::mismatch(a, b);
  if (x == a.end() || y == b.end()) return a.size() < b.size();
  const auto at = static_cast<size_t>(x - a.begin());
  const auto code = [](char c) { return static_cast<unsigned char>(c); };
  if (is_letter(*x) && is_letter(*y)) return code(*x) < code(*y);
  if (is_letter(*x) || is_letter(*y)) return is_letter(*y);
  uint64_t start = 0;
  if (*x == '0' || *y == '0') {
    for (size_t j = at; j > 0 && is_digit(a[j - 1]); --j) {
      if (a[j - 1] != '0') start = 1;
    }
  }
  const auto [a_end, a_number] = number_at(a, at, start);
  const auto [b_end, b_number] = number_at(b, at, start);
  if (a_number != b_number) return a_number < b_number;
  if (a_end != b_end) return a_end < b_end;
  return code(*x) < code(*y);
}

class Writer {
 public:
  Writer() {
    yaml_emitter_initialize(&emitter_);
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_emitter_set_output(&emitter_, append, &text_);
  }
  ~Writer() { yaml_emitter_delete(&emitter_); }
  Writer(const Writer&) = delete;

  std::string write_document(const Json& value) {
    yaml_event_t event;
    yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING);
    emit(event);
    yaml_document_start_event_initialize(&event, nullptr, nullptr, nullptr, 1);
    emit(event);
    write(value);
    yaml_document_end_event_initialize(&event, 1);
    emit(event);
    yaml_stream_end_event_initialize(&event);
    emit(event);
    yaml_emitter_flush(&emitter_);
    // libyaml marks the end after some scalars; kubectl does not.
    if (text_.ends_with("\n...\n")) text_.resize(text_.size() - 4);
    return std::move(text_);
  }

 private:
  static int append(void* text, unsigned char* bytes, size_t size) {
    static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), size);
    return 1;
  }

  void emit(yaml_event_t& event) { yaml_emitter_emit(&emitter_, &event); }

  void write_scalar(std::string_view text, yaml_scalar_style_t style) {
    yaml_event_t event;
    yaml_scalar_event_initialize(&event, nullptr, nullptr,
                                 reinterpret_cast<const yaml_char_t*>(text.data()),
                                 static_cast<int>(text.size()), 1, 1, style);
    emit(event);
  }

  void write_string(std::string_view text) {
    const bool merges = text == "<<";  // as a key, unless it is quoted
    const bool plain =
        resolve_yaml_scalar(text).type == YamlType::kString && !is_base60(text) && !merges;
    const auto style = text.find('\n') != std::string_view::npos ? YAML_LITERAL_SCALAR_STYLE
                       : plain                                   ? YAML_PLAIN_SCALAR_STYLE
                                                                 : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    write_scalar(text, style);
  }

  void write(const Json& value) {
    switch (value.kind()) {
      case boost::json::kind::string:
        return write_string(value.get_string());
      case boost::json::kind::array:
        return write_array(value.get_array());
      case boost::json::kind::object:
        return write_object(value.get_object());
      case boost::json::kind::double_:
        return write_double(value.get_double());
      default:
        return write_scalar(to_text(value), YAML_PLAIN_SCALAR_STYLE);
    }
  }

  void write_double(double value) {
    const bool whole = std::trunc(value) == value && std::fabs(value) < 0x1p63;
    const std::string text = whole ? number_text(value) : go_float_text(value);
    write_scalar(text, YAML_PLAIN_SCALAR_STYLE);
  }

  void write_array(const JsonArray& array) {
    yaml_event_t event;
    yaml_sequence_start_event_initialize(&event, nullptr, nullptr, 1, YAML_BLOCK_SEQUENCE_STYLE);
    emit(event);
    for (const Json& element : array) write(element);
    yaml_sequence_end_event_initialize(&event);
    emit(event);
  }

  void write_object(const JsonObject& object) {
    std::vector<const JsonObject::value_type*> members;
    members.reserve(object.size());
    for (const auto& member : object) members.push_back(&member);
    // The natural order has cycles (a10 < a1b < a9 < a10), where std::sort may run astray and a
    // heap sort may not. First by bytes: the output must not depend on how the object was built.
    const auto key = [](const auto* member) { return std::string_view(member->key()); };
    std::ranges::sort(members, {}, key);
    std::ranges::make_heap(members, natural_less, key);
    std::ranges::sort_heap(members, natural_less, key);
    yaml_event_t event;
    yaml_mapping_start_event_initialize(&event, nullptr, nullptr, 1, YAML_BLOCK_MAPPING_STYLE);
    emit(event);
    for (const auto* member : members) {
      write_string(member->key());
      write(member->value());
    }
    yaml_mapping_end_event_initialize(&event);
    emit(event);
  }

  yaml_emitter_t emitter_{};
  std::string text_;
};

}  // namespace

std::string to_yaml(const Json& value) {
  return Writer().write_document(value);
}

}  // namespace grapnel
