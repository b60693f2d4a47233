#include "api/fault_text.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/strings.h"
#include "document/pattern.h"

namespace grapnel::api {
namespace {

constexpr std::string_view kOfNothing = "Invalid value: \"\": ";

// What could stand where something is missing, by its last name.
constexpr auto kExamples = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"kind", "AIchorManifest"},
    {"apiVersion", "0.2.3"},
    {"spec", "{operator: jax, command: …, types: …}"},
    {"operator", "jax"},
    {"command", "python3 -u main.py"},
    {"types", "{worker: {count: 2, resources: {cpus: 1, ramRatio: 2}}}"},
    {"worker", "{count: 2, resources: {cpus: 1, ramRatio: 2}}"},
    {"Head", "{resources: {cpus: 1, ramRatio: 2}}"},
    {"Workers", "[{name: cpu, count: 2, resources: {cpus: 1, ramRatio: 2}}]"},
    {"resources", "{cpus: 1, ramRatio: 2}"},
    {"ramRatio", "2"},
    {"count", "1"},
    {"enabled", "true"},
    {"sizeGB", "10"},
    {"mountPoint", "/data"},
});

std::string required(std::string_view field, Examples examples) {
  if (examples == Examples::kNone) return "required, and missing";
  const auto name = field.substr(field.rfind('.') + 1);
  const auto* example =
      std::ranges::find(kExamples, name, &std::pair<std::string_view, std::string_view>::first);
  if (example == kExamples.end()) return "required, and missing";
  return fmt::format("required, and missing, such as `{}: {}`", name, example->second);
}

// A scalar that is right but for its quotes, written right; "" for all else.
std::string without_mistake(const Cause& cause) {
  const std::string& found = cause.found;
  const bool is_quoted = found.size() > 1 && found.front() == '"';
  const bool is_scalar = !is_quoted && found != "null" && !matches_pattern("^[\\[{]", found);
  if (cause.allowed == "a string") return is_scalar ? fmt::format("\"{}\"", found) : "";
  if (!is_quoted) return "";
  std::string inside = found.substr(1, found.size() - 2);
  const bool is_right =
      (cause.allowed == "an integer" && matches_pattern(R"(^-?\d+$)", inside)) ||
      (cause.allowed == "a number" && matches_pattern(R"(^-?\d+(\.\d+)?$)", inside)) ||
      (cause.allowed == "a boolean" && (inside == "true" || inside == "false"));
  return is_right ? inside : "";
}

// What was probably meant; "" when nothing is near.
std::string meant_by(const Cause& cause) {
  if (cause.found.empty() || cause.allowed.empty()) return "";
  if (cause.reason == "FieldValueTypeInvalid") return without_mistake(cause);
  std::vector<std::string_view> names = split(cause.allowed, ',');
  for (auto& name : names) name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  return std::string(nearest(cause.found, names));
}

std::string headline(const Cause& cause, Examples examples) {
  std::string text = cause.message;
  if (cause.reason == "FieldValueRequired") text = required(cause.field, examples);
  if (cause.reason == "FieldValueTypeInvalid") text = "must be " + cause.allowed;
  if (cause.reason == "FieldValueNotSupported") text = "unsupported value";
  const auto meant = meant_by(cause);
  const bool is_said = meant.empty() || meant == cause.allowed ||
                       cause.message.find("did you mean") != std::string::npos;
  if (is_said) return text;
  // A scalar is shown as it is to be written.
  const char* quote = cause.reason == "FieldValueTypeInvalid" ? "" : "\"";
  return text + fmt::format(", did you mean {0}{1}{0}?", quote, meant);
}

std::string found_and_allowed(const Cause& cause) {
  if (cause.found.empty() || cause.allowed.empty()) return "";
  std::string text = fmt::format("\n  found    {}\n  allowed  {}", cause.found, cause.allowed);
  const auto meant = meant_by(cause);
  if (cause.found != meant && to_lower(cause.found) == to_lower(meant)) {
    text += meant == to_lower(meant) ? "   (lower case)" : "   (mind the case)";
  }
  return text;
}

bool is_at_or_below(std::string_view field, std::string_view other) {
  return field.starts_with(other) &&
         (field.size() == other.size() || field[other.size()] == '.' || field[other.size()] == '[');
}

// Of what could not be read, only that it could not; or, where more is known of what belongs there
// than its type, that.
std::vector<Cause> one_for_each_value(const std::vector<Cause>& causes) {
  std::vector<Cause> kept;
  for (const Cause& cause : causes) {
    const auto unread = std::ranges::find_if(kept, [&](const Cause& earlier) {
      return earlier.reason == "FieldValueTypeInvalid" &&
             is_at_or_below(cause.field, earlier.field);
    });
    if (unread == kept.end()) {
      kept.push_back(cause);
    } else if (cause.field == unread->field && cause.message.starts_with(kOfNothing)) {
      unread->message = fmt::format("Invalid value: {}: {}", unread->found,
                                    std::string_view(cause.message).substr(kOfNothing.size()));
      unread->reason = cause.reason;
      unread->allowed.clear();
    }
  }
  return kept;
}

// A name that is spelled wrong is not missing as well.
std::vector<Cause> without_misspelled(std::vector<Cause> causes) {
  std::set<std::string> meant;
  for (const auto& cause : causes) {
    const auto right = meant_by(cause);
    if (right.empty() || !cause.field.ends_with(cause.found)) continue;
    meant.insert(cause.field.substr(0, cause.field.size() - cause.found.size()) + right);
  }
  std::erase_if(causes, [&](const Cause& cause) {
    return cause.reason == "FieldValueRequired" && meant.contains(cause.field);
  });
  return causes;
}

}  // namespace

std::vector<Cause> sorted_faults(std::vector<Cause> causes, const Positions& positions) {
  std::multimap<std::pair<int, int>, Cause> by_place;
  for (Cause& cause : without_misspelled(one_for_each_value(causes))) {
    const Position at = positions.find(cause.field);
    by_place.emplace(std::pair{at.line, at.column}, std::move(cause));
  }
  causes.clear();
  for (auto& [place, cause] : by_place) causes.push_back(std::move(cause));
  return causes;
}

std::string format_faults(std::string_view file, const std::vector<Cause>& causes,
                          const Positions& positions, Examples examples) {
  std::string text;
  for (const auto& cause : causes) {
    const Position at = positions.find(cause.field);
    text += fmt::format("{}{}:{}:{}: {}: {}{}", text.empty() ? "" : "\n", file, at.line, at.column,
                        cause.field, headline(cause, examples), found_and_allowed(cause));
  }
  return text;
}

}  // namespace grapnel::api
