#include "local/limits/limit_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "local/limits/usage.h"

namespace grapnel::local {
namespace {

const JsonArray& items_of(const Json& limit_range) {
  static const JsonArray kNone;
  const Json* list = at(limit_range, "spec", "limits");
  return list != nullptr && list->is_array() ? list->as_array() : kNone;
}

const JsonObject& amounts_of(const Json& value, std::string_view key) {
  static const JsonObject kNone;
  const Json* map = find(value, key);
  return map != nullptr && map->is_object() ? map->as_object() : kNone;
}

std::optional<Quantity> amount(const Json& value) {
  return value.is_number() ? std::optional(Quantity::from_units(int_or(&value)))
                           : Quantity::parse(string_or(&value));
}

void fill_container(JsonObject& container, std::string_view which, const JsonObject& from,
                    std::vector<std::string>& set) {
  if (from.empty()) return;
  JsonObject& amounts = ensure_object(ensure_object(container, "resources"), which);
  std::vector<std::string_view> names;
  for (const auto& [name, value] : from) {
    if (amounts.contains(name)) continue;
    amounts[name] = value;
    names.emplace_back(name);
  }
  if (names.empty()) return;
  std::ranges::sort(names);
  set.push_back(fmt::format("{} {} for container {}", fmt::join(names, ", "),
                            which == "limits" ? "limit" : "request",
                            string_or(container.if_contains("name"))));
}

// One set of requests and limits against one item.
class Check {
 public:
  Check(const Json& item, Usage requests, Usage limits, std::vector<std::string>& out)
      : item_(item),
        type_(string_or(find(item, "type"))),
        requests_(std::move(requests)),
        limits_(std::move(limits)),
        out_(out) {}

  void run() {
    for (const auto& [name, value] : amounts_of(item_, "min")) check_min(name, value);
    for (const auto& [name, value] : amounts_of(item_, "max")) check_max(name, value);
    for (const auto& [name, value] : amounts_of(item_, "maxLimitRequestRatio")) {
      check_ratio(name, value);
    }
  }

 private:
  static const Quantity* in(const Usage& usage, std::string_view name) {
    const auto found = usage.find(std::string(name));
    return found == usage.end() ? nullptr : &found->second;
  }

  void say(std::string_view bound, std::string_view name, const Quantity& enforced,
           std::string_view problem) {
    out_.push_back(
        fmt::format("{} {} usage per {} is {}{}", bound, name, type_, enforced.text(), problem));
  }

  void check_min(std::string_view name, const Json& value) {
    const auto enforced = amount(value);
    if (!enforced) return;
    const auto* request = in(requests_, name);
    const auto* limit = in(limits_, name);
    if (request == nullptr) return say("minimum", name, *enforced, ".  No request is specified");
    if (*request < *enforced) {
      say("minimum", name, *enforced, fmt::format(", but request is {}", request->text()));
    }
    if (limit != nullptr && *limit < *enforced) {
      say("minimum", name, *enforced, fmt::format(", but limit is {}", limit->text()));
    }
  }

  void check_max(std::string_view name, const Json& value) {
    const auto enforced = amount(value);
    if (!enforced) return;
    const auto* request = in(requests_, name);
    const auto* limit = in(limits_, name);
    if (type_ == "PersistentVolumeClaim") {
      limit = request;
    } else if (limit == nullptr) {
      return say("maximum", name, *enforced, ".  No limit is specified");
    }
    if (limit != nullptr && *limit > *enforced) {
      return say(
          "maximum", name, *enforced,
          fmt::format(", but {} is {}", type_ == "PersistentVolumeClaim" ? "request" : "limit",
                      limit->text()));
    }
    if (request != nullptr && *request > *enforced) {
      say("maximum", name, *enforced, fmt::format(", but request is {}", request->text()));
    }
  }

  void check_ratio(std::string_view name, const Json& value) {
    const auto enforced = amount(value);
    const auto* request = in(requests_, name);
    const auto* limit = in(limits_, name);
    if (!enforced || request == nullptr || limit == nullptr || request->is_zero()) return;
    const double ratio =
        static_cast<double>(limit->milli()) / static_cast<double>(request->milli());
    if (ratio * 1000 <= static_cast<double>(enforced->milli())) return;
    out_.push_back(
        fmt::format("{} max limit to request ratio per {} is {}, but provided ratio is {:f}", name,
                    type_, enforced->text(), ratio));
  }

  const Json& item_;
  std::string_view type_;
  Usage requests_;
  Usage limits_;
  std::vector<std::string>& out_;
};

Usage usage_in(const Json& container, std::string_view which) {
  return pod_resources(JsonObject{{"containers", JsonArray{container}}}, which);
}

}  // namespace

void set_limit_defaults(Json& pod, const Json& limit_range) {
  std::vector<std::string> set;
  for (const Json& item : items_of(limit_range)) {
    if (string_or(find(item, "type")) != "Container" || !pod.is_object()) continue;
    JsonObject& spec = ensure_object(pod.as_object(), "spec");
    for (const auto* key : {"initContainers", "containers"}) {
      Json* list = spec.if_contains(key);
      if (list == nullptr || !list->is_array()) continue;
      for (Json& container : list->as_array()) {
        if (!container.is_object()) continue;
        fill_container(container.as_object(), "requests", amounts_of(item, "defaultRequest"), set);
        fill_container(container.as_object(), "limits", amounts_of(item, "default"), set);
      }
    }
  }
  if (set.empty()) return;
  JsonObject& metadata = ensure_object(pod.as_object(), "metadata");
  ensure_object(metadata, "annotations")["kubernetes.io/limit-ranger"] =
      fmt::format("LimitRanger plugin set: {}", fmt::join(set, "; "));
}

std::vector<std::string> limit_violations(const Json& object, std::string_view plural,
                                          const Json& limit_range) {
  std::vector<std::string> out;
  for (const Json& item : items_of(limit_range)) {
    const std::string_view type = string_or(find(item, "type"));
    const Json* spec = find(object, "spec");
    if (spec == nullptr) continue;
    if (plural == "persistentvolumeclaims" && type == "PersistentVolumeClaim") {
      Check(item, usage_in(*spec, "requests"), {}, out).run();
    } else if (plural == "pods" && type == "Pod") {
      Check(item, pod_resources(*spec, "requests"), pod_resources(*spec, "limits"), out).run();
    } else if (plural == "pods" && type == "Container") {
      for (const auto* key : {"containers", "initContainers"}) {
        const Json* list = find(*spec, key);
        if (list == nullptr || !list->is_array()) continue;
        for (const Json& container : list->as_array()) {
          Check(item, usage_in(container, "requests"), usage_in(container, "limits"), out).run();
        }
      }
    }
  }
  return out;
}

}  // namespace grapnel::local
