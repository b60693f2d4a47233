#include "local/limits/usage.h"

#include <fmt/format.h>

#include <algorithm>

namespace grapnel::local {
namespace {

Usage amounts_of(const Json* map) {
  Usage usage;
  if (map == nullptr || !map->is_object()) return usage;
  for (const auto& [name, value] : map->as_object()) {
    const auto amount = value.is_number() ? std::optional(Quantity::from_units(int_or(&value)))
                                          : Quantity::parse(string_or(&value));
    if (amount) usage[std::string(name)] = *amount;
  }
  return usage;
}

const JsonArray& list_of(const Json& value, std::string_view key) {
  static const JsonArray kNone;
  const Json* list = find(value, key);
  return list != nullptr && list->is_array() ? list->as_array() : kNone;
}

bool has_ended(const Json& pod) {
  const std::string_view phase = string_or(at(pod, "status", "phase"));
  return phase == "Succeeded" || phase == "Failed";
}

// Names that stand for the requests without saying so.
bool is_plain(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage";
}

void add_pod(const Json& pod, Usage& usage) {
  const Json* spec = find(pod, "spec");
  if (spec == nullptr || has_ended(pod)) return;
  usage["pods"] = Quantity::from_units(1);
  for (const auto& [name, amount] : pod_resources(*spec, "requests")) {
    usage["requests." + name] = amount;
    if (is_plain(name)) usage[name] = amount;
  }
  for (const auto& [name, amount] : pod_resources(*spec, "limits")) {
    if (is_plain(name)) usage["limits." + name] = amount;
  }
}

}  // namespace

Usage pod_resources(const Json& pod_spec, std::string_view which) {
  Usage sum;
  Usage largest;
  for (const Json& container : list_of(pod_spec, "initContainers")) {
    Usage now = amounts_of(at(container, "resources", which));
    if (string_or(find(container, "restartPolicy")) == "Always") {
      add(sum, now);
      continue;
    }
    add(now, sum);
    for (const auto& [name, amount] : now) largest[name] = std::max(largest[name], amount);
  }
  for (const Json& container : list_of(pod_spec, "containers")) {
    add(sum, amounts_of(at(container, "resources", which)));
  }
  for (const auto& [name, amount] : largest) sum[name] = std::max(sum[name], amount);
  return sum;
}

Usage usage_of(const Json& object, std::string_view group, std::string_view plural) {
  Usage usage;
  usage[fmt::format("count/{}{}{}", plural, group.empty() ? "" : ".", group)] =
      Quantity::from_units(1);
  if (!group.empty()) return usage;
  if (plural == "pods") {
    add_pod(object, usage);
  } else {
    usage[std::string(plural)] = Quantity::from_units(1);
  }
  if (plural == "persistentvolumeclaims") {
    const Usage asked = amounts_of(at(object, "spec", "resources", "requests"));
    if (const auto found = asked.find("storage"); found != asked.end()) {
      usage["requests.storage"] = found->second;
    }
  }
  if (plural == "services") {
    const std::string_view type = string_or(at(object, "spec", "type"));
    if (type == "LoadBalancer") usage["services.loadbalancers"] = Quantity::from_units(1);
    if (type == "NodePort" || type == "LoadBalancer") {
      const Json* spec = find(object, "spec");
      usage["services.nodeports"] =
          Quantity::from_units(static_cast<int64_t>(list_of(*spec, "ports").size()));
    }
  }
  return usage;
}

void add(Usage& sum, const Usage& more) {
  for (const auto& [name, amount] : more) sum[name] = sum[name] + amount;
}

std::string text_of(const Usage& usage, const Usage& names) {
  std::string text;
  for (const auto& [name, ignored] : names) {
    const auto found = usage.find(name);
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name,
                        found == usage.end() ? "0" : found->second.text());
  }
  return text;
}

}  // namespace grapnel::local
