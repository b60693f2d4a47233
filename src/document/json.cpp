#include "document/json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

namespace grapnel {
namespace {

// How that byte is written; "" as it is, "u" by its number. kubectl's printer also escapes what
// HTML would read as its own.
std::string_view escape_of(char byte, bool for_html) {
  switch (byte) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '<':
    case '>':
    case '&':
      return for_html ? "u" : "";
    default:
      return static_cast<unsigned char>(byte) < 0x20 ? "u" : "";
  }
}

void append_quoted(std::string& out, std::string_view text, bool for_html) {
  out += '"';
  size_t plain = 0;  // start of what needs no escape
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view escape = escape_of(text[i], for_html);
    if (escape.empty()) continue;
    out += text.substr(plain, i - plain);
    if (escape == "u") {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[i]));
    } else {
      out += escape;
    }
    plain = i + 1;
  }
  out += text.substr(plain);
  out += '"';
}

// boost::json::serialize writes 1.5 as 1.5E0 and has no pretty form.
class Writer {
 public:
  explicit Writer(bool pretty) : pretty_(pretty) {}

  void write(const Json& value) {
    switch (value.kind()) {
      case boost::json::kind::null:
        text_ += "null";
        break;
      case boost::json::kind::bool_:
        text_ += value.get_bool() ? "true" : "false";
        break;
      case boost::json::kind::int64:
        text_ += fmt::format_int(value.get_int64()).c_str();
        break;
      case boost::json::kind::uint64:
        text_ += fmt::format_int(value.get_uint64()).c_str();
        break;
      case boost::json::kind::double_:
        text_ += number_text(value.get_double());
        break;
      case boost::json::kind::string:
        append_quoted(text_, value.get_string(), pretty_);
        break;
      case boost::json::kind::array:
        write_array(value.get_array());
        break;
      case boost::json::kind::object:
        write_object(value.get_object());
        break;
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void write_array(const JsonArray& array) {
    open('[');
    bool first = true;
    for (const Json& element : array) {
      next_line(first);
      write(element);
    }
    close(']', array.empty());
  }

  void write_object(const JsonObject& object) {
    open('{');
    bool first = true;
    if (pretty_) {
      std::vector<const JsonObject::value_type*> members;
      members.reserve(object.size());
      for (const auto& member : object) members.push_back(&member);
      std::ranges::sort(members, {}, [](const auto* m) { return std::string_view(m->key()); });
      for (const auto* member : members) write_member(*member, first);
    } else {
      for (const auto& member : object) write_member(member, first);
    }
    close('}', object.empty());
  }

  void write_member(const JsonObject::value_type& member, bool& first) {
    next_line(first);
    append_quoted(text_, member.key(), pretty_);
    text_ += pretty_ ? ": " : ":";
    write(member.value());
  }

  void open(char bracket) {
    text_ += bracket;
    ++depth_;
  }

  void close(char bracket, bool empty) {
    --depth_;
    if (pretty_ && !empty) new_line();
    text_ += bracket;
  }

  void next_line(bool& first) {
    if (!first) text_ += ',';
    first = false;
    if (pretty_) new_line();
  }

  void new_line() {
    text_ += '\n';
    text_.append(depth_ * 4, ' ');
  }

  std::string text_;
  bool pretty_;
  size_t depth_ = 0;
};

// What the parser finds, put together. Boost's own puts doubles together too, but up to two units
// in the last place off (it says so); a value that is read and written back must not change.
class Builder {
 public:
  static constexpr size_t max_object_size = JsonObject::max_size();
  static constexpr size_t max_array_size = JsonArray::max_size();
  static constexpr size_t max_key_size = boost::json::string::max_size();
  static constexpr size_t max_string_size = boost::json::string::max_size();
  using Text = boost::json::string_view;
  using ErrorCode = boost::json::error_code;

  bool on_document_begin(ErrorCode&) { return stack_.reset(), true; }
  bool on_document_end(ErrorCode&) { return true; }
  bool on_object_begin(ErrorCode&) { return true; }
  bool on_object_end(size_t size, ErrorCode&) { return stack_.push_object(size), true; }
  bool on_array_begin(ErrorCode&) { return true; }
  bool on_array_end(size_t size, ErrorCode&) { return stack_.push_array(size), true; }
  bool on_key_part(Text part, size_t, ErrorCode&) { return stack_.push_chars(part), true; }
  bool on_key(Text part, size_t, ErrorCode&) { return stack_.push_key(part), true; }
  bool on_string_part(Text part, size_t, ErrorCode&) { return stack_.push_chars(part), true; }
  bool on_string(Text part, size_t, ErrorCode&) { return stack_.push_string(part), true; }
  bool on_number_part(Text, ErrorCode&) { return true; }
  bool on_int64(int64_t value, Text, ErrorCode&) { return stack_.push_int64(value), true; }
  bool on_uint64(uint64_t value, Text, ErrorCode&) { return stack_.push_uint64(value), true; }
  bool on_double(double value, Text text, ErrorCode& error) {
    std::from_chars(text.data(), text.data() + text.size(), value);
    if (!std::isfinite(value)) error = boost::json::error::exponent_overflow;
    return stack_.push_double(value), std::isfinite(value);
  }
  bool on_bool(bool value, ErrorCode&) { return stack_.push_bool(value), true; }
  bool on_null(ErrorCode&) { return stack_.push_null(), true; }
  bool on_comment_part(Text, ErrorCode&) { return true; }
  bool on_comment(Text, ErrorCode&) { return true; }

  Json take() { return stack_.release(); }

 private:
  boost::json::value_stack stack_;
};

// The value as an int64, when it is one in any of the three number kinds.
std::optional<int64_t> exact_int(const Json& value) {
  if (const auto* i = value.if_int64()) return *i;
  if (const auto* u = value.if_uint64()) {
    if (*u > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(*u);
  }
  if (const auto* d = value.if_double()) {
    if (*d >= -0x1p63 && *d < 0x1p63 && std::trunc(*d) == *d) return static_cast<int64_t>(*d);
  }
  return std::nullopt;
}

bool equal_numbers(const Json& a, const Json& b) {
  const auto x = exact_int(a);
  const auto y = exact_int(b);
  if (x || y) return x == y;
  const auto as_double = [](const Json& v) {
    return v.is_double() ? v.get_double() : static_cast<double>(v.get_uint64());
  };
  return as_double(a) == as_double(b);
}

bool equal_objects(const JsonObject& a, const JsonObject& b) {
  if (a.size() != b.size()) return false;
  return std::ranges::all_of(a, [&](const auto& member) {
    const Json* other = b.if_contains(member.key());
    return other != nullptr && equal(member.value(), *other);
  });
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  if (text.size() > kMaxJsonSize) {
    return fail(Reason::kDecode, "JSON text of {} bytes is too large (at most {})", text.size(),
                kMaxJsonSize);
  }
  boost::json::error_code error;
  boost::json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  boost::json::basic_parser<Builder> parser(options);
  const size_t taken = parser.write_some(false, text.data(), text.size(), error);
  if (!error && taken < text.size()) error = boost::json::error::extra_data;
  if (error) return fail(Reason::kDecode, "invalid JSON: {}", error.message());
  return parser.handler().take();
}

void append_quoted(std::string& out, std::string_view text) {
  append_quoted(out, text, false);
}

std::string to_text(const Json& value) {
  Writer writer(false);
  writer.write(value);
  return writer.take();
}

std::string to_pretty_text(const Json& value) {
  Writer writer(true);
  writer.write(value);
  return writer.take();
}

const Json* find(const Json& value, std::string_view key) {
  const JsonObject* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(key);
}

std::string_view string_or(const Json* value, std::string_view fallback) {
  const auto* string = value == nullptr ? nullptr : value->if_string();
  return string == nullptr ? fallback : std::string_view(*string);
}

int64_t int_or(const Json* value, int64_t fallback) {
  return value == nullptr ? fallback : exact_int(*value).value_or(fallback);
}

bool bool_or(const Json* value, bool fallback) {
  const bool* boolean = value == nullptr ? nullptr : value->if_bool();
  return boolean == nullptr ? fallback : *boolean;
}

JsonObject& ensure_object(JsonObject& parent, std::string_view key) {
  // parent[key] makes room for one more first, also where the key is there: members would move.
  Json* found = parent.if_contains(key);
  Json& value = found != nullptr ? *found : parent[key];
  return value.is_object() ? value.get_object() : value.emplace_object();
}

bool equal(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case boost::json::kind::array:
      return std::ranges::equal(a.get_array(), b.get_array(), equal);
    case boost::json::kind::object:
      return equal_objects(a.get_object(), b.get_object());
    default:
      return a == b;
  }
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return "null";  // JSON has no word for it
  char buffer[64];
  const auto in = [&](std::chars_format format) {
    const char* end = std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr;
    return std::string(static_cast<const char*>(buffer), end);
  };
  const double size = std::fabs(value);
  // Exact where it may be read back as an int64.
  if (size == 0 || (size >= 1e-6 && size < 0x1p63)) return in(std::chars_format::fixed);
  std::string text = in(std::chars_format::scientific);
  const size_t e = text.find('e');
  if (size >= 1e21) return text;
  if (size < 1) {  // Go writes 1e-7, not 1e-07
    if (text[e + 2] == '0') text.erase(e + 2, 1);
    return text;
  }
  // The shortest digits, then zeros: the other digits of the exact value say nothing.
  const auto exponent = static_cast<size_t>(std::atoi(text.c_str() + e + 1));
  text.resize(e);
  std::erase(text, '.');
  text.append(exponent + 1 - (text.size() - (value < 0 ? 1 : 0)), '0');
  return text;
}

}  // namespace grapnel
