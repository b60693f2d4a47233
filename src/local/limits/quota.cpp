#include "local/limits/quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace grapnel::local {
namespace {

bool is_best_effort(const Json& pod) {
  const Json* spec = find(pod, "spec");
  return spec == nullptr ||
         (pod_resources(*spec, "requests").empty() && pod_resources(*spec, "limits").empty());
}

bool in_scope(std::string_view scope, const Json& pod) {
  const bool ends = at(pod, "spec", "activeDeadlineSeconds") != nullptr;
  if (scope == "Terminating") return ends;
  if (scope == "NotTerminating") return !ends;
  if (scope == "BestEffort") return is_best_effort(pod);
  if (scope == "NotBestEffort") return !is_best_effort(pod);
  return false;
}

// A quota of CPU or memory can only be kept if every container says what it takes.
std::vector<std::string> unsaid(const Quota& quota, const Json& pod) {
  struct Demand {
    std::string_view name, which, resource;
  };
  static constexpr std::array<Demand, 6> kDemands{{{"cpu", "requests", "cpu"},
                                                   {"limits.cpu", "limits", "cpu"},
                                                   {"limits.memory", "limits", "memory"},
                                                   {"memory", "requests", "memory"},
                                                   {"requests.cpu", "requests", "cpu"},
                                                   {"requests.memory", "requests", "memory"}}};
  std::vector<std::string> missing;
  for (const auto& demand : kDemands) {
    if (!quota.hard.contains(std::string(demand.name))) continue;
    std::vector<std::string> silent;
    for (const auto* list : {"initContainers", "containers"}) {
      const Json* containers = at(pod, "spec", list);
      if (containers == nullptr || !containers->is_array()) continue;
      for (const Json& container : containers->as_array()) {
        if (at(container, "resources", demand.which, demand.resource) == nullptr) {
          silent.emplace_back(string_or(find(container, "name")));
        }
      }
    }
    if (silent.empty()) continue;
    std::ranges::sort(silent);
    missing.push_back(fmt::format("{} for: {}", demand.name, fmt::join(silent, ",")));
  }
  return missing;
}

}  // namespace

Quota Quota::from_json(const Json& object) {
  Quota quota{.name = std::string(string_or(at(object, "metadata", "name")))};
  if (const Json* hard = at(object, "spec", "hard"); hard != nullptr && hard->is_object()) {
    for (const auto& [name, value] : hard->as_object()) {
      const auto amount = value.is_number() ? std::optional(Quantity::from_units(int_or(&value)))
                                            : Quantity::parse(string_or(&value));
      if (amount) quota.hard[std::string(name)] = *amount;
    }
  }
  if (const Json* scopes = at(object, "spec", "scopes"); scopes != nullptr && scopes->is_array()) {
    for (const Json& scope : scopes->as_array()) quota.scopes.emplace_back(string_or(&scope));
  }
  return quota;
}

bool Quota::covers(const Json& object, std::string_view plural) const {
  if (scopes.empty()) return true;
  return plural == "pods" && std::ranges::all_of(scopes, [&](const std::string& scope) {
           return in_scope(scope, object);
         });
}

Usage Quota::limited(const Usage& usage) const {
  Usage ours;
  for (const auto& [resource, amount] : usage) {
    if (hard.contains(resource)) ours[resource] = amount;
  }
  return ours;
}

std::optional<std::string> why_beyond(const Quota& quota, const Usage& used, const Json& object,
                                      std::string_view group, std::string_view plural) {
  if (!quota.covers(object, plural)) return std::nullopt;
  if (group.empty() && plural == "pods") {
    if (const auto missing = unsaid(quota, object); !missing.empty()) {
      return fmt::format("failed quota: {}: must specify {}", quota.name, fmt::join(missing, "; "));
    }
  }
  Usage exceeded;
  const Usage asked = quota.limited(usage_of(object, group, plural));
  for (const auto& [name, amount] : asked) {
    const auto found = used.find(name);
    const Quantity total = found == used.end() ? amount : found->second + amount;
    if (!amount.is_zero() && total > quota.hard.at(name)) exceeded[name] = amount;
  }
  if (exceeded.empty()) return std::nullopt;
  return fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}", quota.name,
                     text_of(asked, exceeded), text_of(used, exceeded),
                     text_of(quota.hard, exceeded));
}

}  // namespace grapnel::local
