#include "base/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace grapnel {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_alphanumeric(char c) {
  return is_lower(lower(c)) || is_digit(c);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// The forms of names; each names its regular expression, as Kubernetes' messages do.
constexpr std::string_view kLabel = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kQualified = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view kQualifiedRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character";

bool is_dns1123_label(std::string_view text) {
  const auto end_ok = [](char c) { return is_lower(c) || is_digit(c); };
  return !text.empty() && end_ok(text.front()) && end_ok(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return end_ok(c) || c == '-'; });
}

bool is_dns1123_subdomain(std::string_view text) {
  return std::ranges::all_of(split(text, '.'), is_dns1123_label);
}

bool is_qualified(std::string_view text) {
  const auto middle_ok = [](char c) {
    return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
  };
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, middle_ok);
}

std::string too_long(size_t most) {
  return fmt::format("must be no more than {} characters", most);
}

std::string with_example(std::string_view rule, std::string_view examples, std::string_view regex) {
  return fmt::format("{} (e.g. {}, regex used for validation is '{}')", rule, examples, regex);
}

std::string why_not_name_part(std::string_view name) {
  if (name.empty()) return "name part must be non-empty";
  if (name.size() > 63) return "name part " + too_long(63);
  if (is_qualified(name)) return "";
  return "name part " +
         with_example(kQualifiedRule, "'MyName',  or 'my.name',  or '123-abc'", kQualified);
}

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr auto kBase64Values = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kBase64.size(); ++i) {
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<int8_t>(i);
  }
  return values;
}();

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string to_lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.size() > 256) return "";  // nobody mistypes a name of that length
  std::string_view best;
  size_t best_distance = std::max<size_t>(word.size() < 4 ? 1 : 2, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    if (candidate.empty() || candidate.size() > 512) continue;
    const size_t distance = edit_distance(to_lower(word), to_lower(candidate));
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string why_not_dns1123_label(std::string_view text) {
  if (text.size() > 63) return too_long(63);
  if (is_dns1123_label(text)) return "";
  if (is_dns1123_subdomain(text)) return "must not contain dots";
  return with_example(
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
      "must start and end with an alphanumeric character",
      "'my-name',  or '123-abc'", kLabel);
}

std::string why_not_dns1123_subdomain(std::string_view text) {
  if (text.size() > 253) return too_long(253);
  if (is_dns1123_subdomain(text)) return "";
  return with_example(
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
      "'.', and must start and end with an alphanumeric character",
      "'example.com'", fmt::format("{}(\\.{})*", kLabel, kLabel));
}

std::string why_not_dns1035_label(std::string_view text) {
  if (text.size() > 63) return too_long(63);
  if (is_dns1123_label(text) && is_lower(text.front())) return "";
  return with_example(
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
      "alphabetic character, and end with an alphanumeric character",
      "'my-name',  or 'abc-123'", "[a-z]([-a-z0-9]*[a-z0-9])?");
}

std::string why_not_label_value(std::string_view text) {
  if (text.size() > 63) return too_long(63);
  if (text.empty() || is_qualified(text)) return "";
  return with_example(
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
      "'.', and must start and end with an alphanumeric character",
      "'MyValue',  or 'my_value',  or '12345'", fmt::format("({})?", kQualified));
}

std::string why_not_qualified_name(std::string_view text) {
  const auto parts = split(text, '/');
  if (parts.size() == 1) return why_not_name_part(text);
  if (parts.size() > 2) {
    return "a qualified name " +
           with_example(kQualifiedRule, "'MyName',  or 'my.name',  or '123-abc'", kQualified) +
           " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
  }
  if (parts[0].empty()) return "prefix part must be non-empty";
  const std::string prefix = why_not_dns1123_subdomain(parts[0]);
  return prefix.empty() ? why_not_name_part(parts[1]) : "prefix part " + prefix;
}

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= count ? kBase64[group >> (18 - 6 * j) & 63U] : '=';
    }
  }
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t group = 0;
  int digits = 0;
  int padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;  // as wrapped by base64(1) and Go's decoder
    if (c == '=') {
      if (digits + ++padding > 4 || digits < 2) return std::nullopt;
      continue;
    }
    const int value = kBase64Values[static_cast<unsigned char>(c)];
    if (value < 0 || padding > 0) return std::nullopt;
    group = group << 6 | static_cast<uint32_t>(value);
    if (++digits < 4) continue;
    bytes +=
        {static_cast<char>(group >> 16), static_cast<char>(group >> 8), static_cast<char>(group)};
    group = 0;
    digits = 0;
  }
  if (digits == 0) return padding == 0 ? std::optional(std::move(bytes)) : std::nullopt;
  if (digits + padding != 4) return std::nullopt;
  bytes += static_cast<char>(group >> (digits == 2 ? 4 : 10));
  if (digits == 3) bytes += static_cast<char>(group >> 2);
  return bytes;
}

std::string percent_encode(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (is_alphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '~') {
      result += c;
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

std::string percent_decode(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        result += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    result += text[i];
  }
  return result;
}

}  // namespace grapnel
