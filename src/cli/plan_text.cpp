#include "cli/plan_text.h"

#include <map>
#include <vector>

#include "base/quantity.h"
#include "base/strings.h"
#include "document/patch.h"

namespace grapnel::cli {
namespace {

using Amounts = std::map<std::string, Quantity, std::less<>>;

// "2 CPUs (at most 4), 8Gi of memory, 1 nvidia.com/gpu"
std::string words_of(const Amounts& requests, const Amounts& limits) {
  std::vector<std::string> parts;
  for (const auto& [name, amount] : requests) {
    if (amount.is_zero()) continue;
    if (name == "cpu") {
      std::string words = fmt::format("{} CPU{}", amount.text(), amount.text() == "1" ? "" : "s");
      const auto limit = limits.find(name);
      if (limit != limits.end() && limit->second != amount) {
        words += fmt::format(" (at most {})", limit->second.text());
      }
      parts.insert(parts.begin(), words);
    } else if (name == "memory") {
      parts.push_back(fmt::format("{} of memory", amount.text()));
    } else {
      parts.push_back(fmt::format("{} {}", amount.text(), name));
    }
  }
  return parts.empty() ? "nothing" : join(parts, ", ");
}

std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

struct Total {
  int64_t pods = 0;
  Amounts requests;
};

// One line for each component; adds it to the total.
std::string component_lines(const std::vector<experiment::ComponentTotal>& components,
                            Total& total) {
  std::string out;
  for (const auto& component : components) {
    out += fmt::format("      {}: {}, each with {}\n", component.name, component.shape,
                       words_of(component.requests, component.limits));
    total.pods += component.pods;
    for (const auto& [name, amount] : component.requests) {
      total.requests[name] = total.requests[name] + amount * component.pods;
    }
  }
  return out;
}

// "spec.image" of "/spec/image".
std::string field_of(std::string_view pointer) {
  std::string out;
  for (const auto part : split(pointer.substr(1), '/')) {
    if (!out.empty()) out += '.';
    out += part;
  }
  return out;
}

const Json* find_pointer(const Json& document, std::string_view pointer) {
  const Json* here = &document;
  for (const auto part : split(pointer.substr(1), '/')) {
    here = here == nullptr ? nullptr : find(*here, part);
  }
  return here;
}

std::string differences(const Json& before, const Json& after) {
  std::string out;
  for (const Json& step : json_patch_between(before, after)) {
    const auto path = string_or(find(step, "path"));
    const auto shown = [&](const Json& document) {
      const Json* value = find_pointer(document, path);
      return value == nullptr ? std::string("nothing") : to_text(*value);
    };
    out += fmt::format("      spec.{}: {} → {}\n", field_of(path), shown(before), shown(after));
  }
  return out;
}

std::string existing_text(const PlanInput& input, std::string_view name) {
  const auto phase = string_or(at(*input.existing, "status", "phase"));
  const Json* spec = find(*input.existing, "spec");
  Json before = spec != nullptr && spec->is_object() ? *spec : Json(JsonObject());
  before.as_object().erase("cancel");
  // The server fills in defaults that the manifest leaves out: only what it says is compared.
  Json after = before;
  apply_merge_patch(after, input.experiment.at("spec"));
  const std::string changed = differences(before, after);
  return fmt::format(
      "  ! Experiment {0} exists already ({1}) {2}\n"
      "    `grapnel submit` would be refused: choose another --name, or `grapnel delete {0}` "
      "first\n"
      "{3}",
      name, phase.empty() ? "Pending" : phase,
      changed.empty() ? "and asks for the same" : "and differs:", changed);
}

}  // namespace

std::string plan_text(const PlanInput& input) {
  const auto name = string_or(at(input.experiment, "metadata", "name"));
  std::string out = fmt::format("On {}:\n", input.where);
  if (input.existing != nullptr) return out + existing_text(input, name);
  const auto image = string_or(at(input.experiment, "spec", "image"));
  out += fmt::format("  + Experiment {}: {}{}\n", name,
                     string_or(at(input.experiment, "spec", "operator")),
                     image.empty() ? "" : fmt::format(", image {}", image));
  Total total;
  const std::string lines = component_lines(input.child.totals, total);
  out += fmt::format("  + {} {}\n{}", input.child.kind->kind, name, lines);
  if (total.pods > 0) {
    out += fmt::format("Total: {}, which request {}.\n", counted(total.pods, "pod"),
                       words_of(total.requests, {}));
  }
  return out;
}

}  // namespace grapnel::cli
