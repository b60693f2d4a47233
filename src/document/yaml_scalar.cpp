#include "document/yaml_scalar.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

namespace grapnel {
namespace {

constexpr std::pair<std::string_view, bool> kBooleans[] = {
    {"y", true},    {"Y", true},      {"yes", true},    {"Yes", true},    {"YES", true},
    {"true", true}, {"True", true},   {"TRUE", true},   {"on", true},     {"On", true},
    {"ON", true},   {"n", false},     {"N", false},     {"no", false},    {"No", false},
    {"NO", false},  {"false", false}, {"False", false}, {"FALSE", false}, {"off", false},
    {"Off", false}, {"OFF", false},
};
constexpr std::string_view kNulls[] = {"", "~", "null", "Null", "NULL"};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::pair<std::string_view, double> kOddFloats[] = {
    {".nan", std::numeric_limits<double>::quiet_NaN()},
    {".NaN", std::numeric_limits<double>::quiet_NaN()},
    {".NAN", std::numeric_limits<double>::quiet_NaN()},
    {".inf", kInfinity},
    {".Inf", kInfinity},
    {".INF", kInfinity},
    {"+.inf", kInfinity},
    {"+.Inf", kInfinity},
    {"+.INF", kInfinity},
    {"-.inf", -kInfinity},
    {"-.Inf", -kInfinity},
    {"-.INF", -kInfinity},
};

bool matches(std::string_view text, const RE2& pattern) {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

int base_of(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  const char mark = digits[1];
  const int base = mark == 'x' || mark == 'X'   ? 16
                   : mark == 'b' || mark == 'B' ? 2
                   : mark == 'o' || mark == 'O' ? 8
                                                : 0;
  digits.remove_prefix(base == 0 ? 1 : 2);
  return base == 0 ? 8 : base;
}

// 12, +12, 0x1f, 0o17, 017, 0b11; an unsigned one may use all 64 bits.
std::optional<Json> parse_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  const bool sign = negative || text.starts_with('+');
  if (sign) text.remove_prefix(1);
  const int base = base_of(text);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (negative) {
    if (value > kMost + 1) return std::nullopt;
    return Json(static_cast<int64_t>(-value));
  }
  if (value <= kMost) return Json(static_cast<int64_t>(value));
  return sign ? std::nullopt : std::optional(Json(value));
}

std::optional<double> parse_float(const std::string& text) {
  static const RE2 kPattern(R"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)");
  if (!matches(text, kPattern)) return std::nullopt;
  const double value = std::strtod(text.c_str(), nullptr);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

bool is_timestamp(std::string_view text) {
  static const RE2 kPattern(
      R"((\d{4})-(\d\d?)-(\d\d?)(?:[Tt](\d\d?:\d\d?:\d\d?)(?:[.,]\d+)?(?:Z|[-+]\d\d:\d\d))"
      R"(| (\d\d?:\d\d?:\d\d?)(?:[.,]\d+)?)?)");
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  std::string zoned;
  std::string plain;
  if (!RE2::FullMatch(re2::StringPiece(text.data(), text.size()), kPattern, &year, &month, &day,
                      &zoned, &plain)) {
    return false;
  }
  if (!(std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day)).ok()) {
    return false;
  }
  const std::string& clock = zoned.empty() ? plain : zoned;
  int h = 0;
  int m = 0;
  int s = 0;
  static const RE2 kClock(R"((\d+):(\d+):(\d+))");
  return clock.empty() || (RE2::FullMatch(clock, kClock, &h, &m, &s) && h < 24 && m < 60 && s < 60);
}

std::optional<YamlScalar> resolve_number(std::string_view text) {
  // After a leading point Go takes underscores between digits only.
  static const RE2 kOddUnderscore(R"(\.(_.*|.*[^0-9]_.*|.*_([^0-9].*)?))");
  if (matches(text, kOddUnderscore)) return std::nullopt;
  std::string plain(text);
  std::erase(plain, '_');
  if (auto integer = parse_integer(plain)) {
    return YamlScalar{.type = YamlType::kInt, .value = std::move(*integer)};
  }
  if (auto value = parse_float(plain)) return YamlScalar{.type = YamlType::kFloat, .value = *value};
  return std::nullopt;
}

template <class Float>
std::string shortest(Float value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  char buffer[64];
  const char* end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string scientific(static_cast<const char*>(buffer), end);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent < -4 || exponent >= 6) return scientific;
  end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  return {static_cast<const char*>(buffer), end};
}

}  // namespace

std::string_view to_string(YamlType type) {
  switch (type) {
    case YamlType::kNull:
      return "!!null";
    case YamlType::kBool:
      return "!!bool";
    case YamlType::kInt:
      return "!!int";
    case YamlType::kFloat:
      return "!!float";
    case YamlType::kTimestamp:
      return "!!timestamp";
    case YamlType::kString:
      return "!!str";
  }
  return "";
}

YamlScalar resolve_yaml_scalar(std::string_view text) {
  for (const auto& [name, value] : kBooleans) {
    if (text == name) return {.type = YamlType::kBool, .value = value};
  }
  if (std::ranges::count(kNulls, text) > 0) return {.type = YamlType::kNull, .value = nullptr};
  for (const auto& [name, value] : kOddFloats) {
    if (text == name) return {.type = YamlType::kFloat, .value = value};
  }
  if (std::string_view("+-.0123456789").find(text.front()) != std::string_view::npos) {
    if (is_timestamp(text)) return {.type = YamlType::kTimestamp, .value = Json(text)};
    if (auto number = resolve_number(text)) return std::move(*number);
  }
  return {.type = YamlType::kString, .value = Json(text)};
}

bool is_base60(std::string_view text) {
  static const RE2 kPattern(R"([-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)");
  return matches(text, kPattern);
}

std::string go_float_text(double value) {
  return shortest(value);
}

std::string go_float_text(float value) {
  return shortest(value);
}

}  // namespace grapnel
