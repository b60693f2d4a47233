#include "local/apiserver/conversion.h"

#include <array>
#include <utility>

namespace grapnel::local {
namespace {

// core/v1 on the left, events.k8s.io/v1 on the right.
constexpr auto kEventFields = std::to_array<std::pair<const char*, const char*>>({
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
});

bool is_event(const ResourceType& type) {
  return type.group == "events.k8s.io" && type.kind == "Event";
}

void rename(JsonObject& object, std::string_view from, std::string_view to) {
  Json* value = object.if_contains(from);
  if (value == nullptr) return;
  Json moved = std::move(*value);
  object.erase(from);
  object[to] = std::move(moved);
}

}  // namespace

void convert_from_storage(const ResourceType& type, Json& object) {
  JsonObject* fields = object.if_object();
  if (fields == nullptr) return;
  (*fields)["apiVersion"] = type.api_version();
  if (!is_event(type)) return;
  for (const auto& [core, events] : kEventFields) rename(*fields, core, events);
  // The core version always shows these; this one only when they say something.
  for (const char* key : {"reportingController", "reportingInstance"}) {
    const Json* value = fields->if_contains(key);
    if (value != nullptr && string_or(value).empty()) fields->erase(key);
  }
}

void convert_to_storage(const ResourceType& type, Json& object) {
  JsonObject* fields = object.if_object();
  if (fields == nullptr) return;
  if (!type.storage_version.empty()) {
    (*fields)["apiVersion"] =
        type.group.empty() ? type.storage_version : type.group + "/" + type.storage_version;
  }
  if (!is_event(type)) return;
  (*fields)["apiVersion"] = "v1";
  for (const auto& [core, events] : kEventFields) rename(*fields, events, core);
  // The core version always shows these.
  for (const char* key : {"firstTimestamp", "lastTimestamp"}) {
    if (!fields->contains(key)) (*fields)[key] = nullptr;
  }
  if (!fields->contains("source")) (*fields)["source"] = JsonObject();
  if (!fields->contains("involvedObject")) (*fields)["involvedObject"] = JsonObject();
}

}  // namespace grapnel::local
