#include "cli/ignore_rules.h"

#include "base/strings.h"

namespace grapnel::cli {
namespace {

void add_literally(std::string& out, char c) {
  if (std::string_view(R"(\.+*?()|[]{}^$)").find(c) != std::string_view::npos) out += '\\';
  out += c;
}

// "[!a-z]" from its bracket on; how much of the glob it took. 0: it has no end.
size_t add_class(std::string& out, std::string_view glob) {
  const size_t first = glob.size() > 1 && (glob[1] == '!' || glob[1] == '^') ? 2 : 1;
  const size_t end = glob.find(']', first + 1);  // a bracket in the first place stands for itself
  if (end == std::string_view::npos) return 0;
  out += first == 2 ? "[^/" : "[";
  for (const char c : glob.substr(first, end - first)) {
    if (c == '[' || c == ']' || c == '\\' || c == '^') out += '\\';
    out += c;
  }
  out += ']';
  return end + 1;
}

// The glob of one rule as a regular expression; linear in the text, whatever the glob.
std::string expression_of(std::string_view glob) {
  std::string out;
  while (!glob.empty()) {
    size_t taken = 1;
    if (glob.starts_with("**/")) {
      out += "(?:.*/)?";
      taken = 3;
    } else if (glob == "**") {
      out += ".+";
      taken = 2;
    } else if (glob[0] == '*') {
      out += "[^/]*";
    } else if (glob[0] == '?') {
      out += "[^/]";
    } else if (glob[0] == '[') {
      taken = add_class(out, glob);
      if (taken == 0) {
        add_literally(out, '[');
        taken = 1;
      }
    } else if (glob[0] == '\\' && glob.size() > 1) {
      add_literally(out, glob[1]);
      taken = 2;
    } else {
      add_literally(out, glob[0]);
    }
    glob.remove_prefix(taken);
  }
  return out;
}

std::string_view without_trailing_spaces(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
  return line;
}

}  // namespace

void IgnoreRules::add(std::string_view text, std::string_view folder) {
  for (std::string_view line : split(text, '\n')) {
    line = without_trailing_spaces(line);
    if (line.empty() || line[0] == '#') continue;
    const bool takes_back = line[0] == '!';
    if (takes_back) line.remove_prefix(1);
    const bool folders_only = line.ends_with('/');
    if (folders_only) line.remove_suffix(1);
    // A slash within it ties a rule to its folder.
    const bool tied = line.find('/') != std::string_view::npos;
    if (line.starts_with('/')) line.remove_prefix(1);
    if (line.empty()) continue;
    std::string expression = "^";
    for (const char c : folder) add_literally(expression, c);
    if (!folder.empty()) expression += '/';
    if (!tied) expression += "(?:.*/)?";
    auto pattern = Pattern::compile(expression + expression_of(line) + "$");
    if (pattern) rules_.push_back({std::move(*pattern), takes_back, folders_only});
  }
}

bool IgnoreRules::ignores(std::string_view path, bool is_folder) const {
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->folders_only && !is_folder) continue;
    if (rule->pattern.matches(path)) return !rule->takes_back;
  }
  return false;
}

}  // namespace grapnel::cli
