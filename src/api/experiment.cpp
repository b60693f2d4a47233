#include "api/experiment.h"

#include <algorithm>

namespace grapnel::api {

bool is_available(Operator op) {
  return std::ranges::find(kAvailableOperators, op) != kAvailableOperators.end();
}

std::vector<std::string_view> available_operators() {
  std::vector<std::string_view> names;
  for (const Operator op : kAvailableOperators) names.push_back(name_of(op));
  return names;
}

std::string_view operator_doc() {
  static const std::string doc = [] {
    std::string available;
    for (const auto name : available_operators()) {
      available += fmt::format("{}`{}`", available.empty() ? "" : ", ", name);
    }
    return fmt::format("What runs it. Available in this version: {}.", available);
  }();
  return doc;
}

bool Experiment::operator==(const Experiment& other) const {
  return meta == other.meta && equal_values(spec, other.spec) && equal_values(status, other.status);
}

ResourceInfo Resource<Experiment>::info() {
  return {.kind = kube::kinds::kExperiment,
          .singular = "experiment",
          .short_names = {"exp"},
          .categories = {"all", "grapnel"},
          .columns = {{"Operator", "string", ".spec.operator"},
                      {"Phase", "string", ".status.phase"},
                      {"Restarts", "integer", ".status.restarts"},
                      {"Age", "date", ".metadata.creationTimestamp"},
                      {"Message", "string", ".status.message", 1}}};
}

kube::MetaOptions Resource<Experiment>::kept_metadata() {
  return {
      .annotations = {"grapnel.dev/code", "grapnel.dev/environment", "grapnel.dev/work-directory"}};
}

}  // namespace grapnel::api
