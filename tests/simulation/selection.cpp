#include "tests/simulation/selection.h"

#include <algorithm>

#include "base/strings.h"

namespace grapnel::simulation {

Selection::Selection(std::string_view ns, std::string_view labels, std::string_view fields)
    : ns_(ns), requirements_(parse(labels, true)) {
  for (auto& requirement : parse(fields, false)) requirements_.push_back(std::move(requirement));
}

std::vector<Selection::Requirement> Selection::parse(std::string_view text, bool labels) {
  using Form = Requirement::Form;
  std::vector<Requirement> out;
  if (text.empty()) return out;
  for (std::string_view part : split(text, ',')) {
    Requirement one{.path = {}, .form = Form::kExists, .value = ""};
    const auto equals = part.find('=');
    if (equals != std::string_view::npos) {
      const bool negated = equals > 0 && part[equals - 1] == '!';
      one.form = negated ? Form::kIsNot : Form::kIs;
      one.value = part.substr(part.find_first_not_of('=', equals));
      part = part.substr(0, equals - (negated ? 1 : 0));
    } else if (part.starts_with('!')) {
      one.form = Form::kMissing;
      part.remove_prefix(1);
    }
    if (labels) {
      one.path = {"metadata", "labels", std::string(part)};
    } else {
      for (const auto name : split(part, '.')) one.path.emplace_back(name);
    }
    out.push_back(std::move(one));
  }
  return out;
}

bool Selection::Requirement::holds(const Json& object) const {
  const Json* found = &object;
  for (const auto& name : path) {
    found = find(*found, name);
    if (found == nullptr) break;
  }
  switch (form) {
    case Form::kExists:
      return found != nullptr;
    case Form::kMissing:
      return found == nullptr;
    case Form::kIs:
      return found != nullptr && string_or(found) == value;
    case Form::kIsNot:
      return found == nullptr || string_or(found) != value;
  }
  return false;
}

bool Selection::matches(const Json& object) const {
  if (!ns_.empty() && string_or(at(object, "metadata", "namespace")) != ns_) return false;
  return std::ranges::all_of(requirements_,
                             [&](const Requirement& one) { return one.holds(object); });
}

}  // namespace grapnel::simulation
