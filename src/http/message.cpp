#include "http/message.h"

#include <algorithm>

namespace grapnel::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

enum class Plus { kPlus, kSpace };

std::string decode(std::string_view text, Plus plus) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '+' && plus == Plus::kSpace) {
      out += ' ';
    } else if (c == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
               hex_value(text[i + 2]) >= 0) {
      out += static_cast<char>((hex_value(text[i + 1]) << 4) | hex_value(text[i + 2]));
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

// "http://host:1/path?x" to "/path?x"; anything else stays.
std::string_view without_authority(std::string_view target) {
  if (target.starts_with('/')) return target;
  const size_t scheme = target.find("://");
  if (scheme == std::string_view::npos || scheme > target.find_first_of("/?")) return target;
  const size_t path = target.find_first_of("/?", scheme + 3);
  return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
}

}  // namespace

void Headers::add(std::string name, std::string value) {
  list_.emplace_back(std::move(name), std::move(value));
}

void Headers::set(std::string_view name, std::string value) {
  std::erase_if(list_, [name](const auto& field) { return same_name(field.first, name); });
  list_.emplace_back(std::string(name), std::move(value));
}

std::string_view Headers::get(std::string_view name) const {
  for (const auto& [key, value] : list_) {
    if (same_name(key, name)) return value;
  }
  return "";
}

bool Headers::has(std::string_view name) const {
  return std::ranges::any_of(list_,
                             [name](const auto& field) { return same_name(field.first, name); });
}

std::string_view Target::get(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return "";
}

bool Target::has(std::string_view name) const {
  return std::ranges::any_of(query, [name](const auto& field) { return field.first == name; });
}

Target parse_target(std::string_view target) {
  target = without_authority(target.substr(0, target.find('#')));
  const size_t question = target.find('?');
  Target out;
  out.path = decode(target.substr(0, question), Plus::kPlus);
  if (question == std::string_view::npos) return out;
  std::string_view rest = target.substr(question + 1);
  while (!rest.empty()) {
    const size_t end = rest.find('&');
    const std::string_view field = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (field.empty()) continue;
    const size_t equals = field.find('=');
    out.query.emplace_back(decode(field.substr(0, equals), Plus::kSpace),
                           equals == std::string_view::npos
                               ? std::string()
                               : decode(field.substr(equals + 1), Plus::kSpace));
  }
  return out;
}

}  // namespace grapnel::http
