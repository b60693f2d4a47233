#include "local/apiserver/managed/managers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "local/apiserver/managed/merge.h"

namespace grapnel::local {
namespace {

// Fields that nobody owns: identity, and what the server sets.
const FieldSet& unowned() {
  static const FieldSet kSet = [] {
    FieldSet set;
    for (const char* name : {"f:apiVersion", "f:kind"}) set.at(name).member = true;
    FieldSet& meta = set.at("f:metadata");
    for (const char* name : {"f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid",
                             "f:generation", "f:managedFields", "f:resourceVersion"}) {
      meta.at(name).member = true;
    }
    return set;
  }();
  return kSet;
}

// What a write of this part of the object cannot own.
void strip(FieldSet& set, const ResourceType& type, const std::string& subresource) {
  set.remove_below(unowned());
  if (const auto it = set.children.find("f:metadata"); it != set.children.end()) {
    it->second.member = false;
    if (it->second.empty()) set.children.erase(it);
  }
  if (!type.status_split) return;
  FieldSet reset;
  if (subresource.empty()) {
    reset.at("f:status").member = true;
  } else if (subresource == "status") {
    reset.at("f:spec").member = true;
    if (type.custom) reset.at("f:metadata").member = true;
  }
  set.remove_below(reset);
}

const Json& or_empty(const Json& object) {
  static const Json kEmpty = JsonObject();
  return object.is_null() ? kEmpty : object;
}

Manager* find(std::vector<Manager>& managers, const Manager& wanted) {
  for (Manager& one : managers) {
    if (one.is(wanted)) return &one;
  }
  return nullptr;
}

void drop_empty(std::vector<Manager>& managers) {
  std::erase_if(managers, [](const Manager& one) { return one.fields.empty(); });
}

std::string shown(const Manager& manager) {
  std::string text = in_quotes(manager.name);
  if (!manager.subresource.empty()) {
    text += fmt::format(" with subresource {}", in_quotes(manager.subresource));
  }
  if (manager.applied) return text;
  return text + fmt::format(" using {}", manager.api_version);
}

struct Conflict {
  const Manager* manager;
  std::string path;
};

ApiError conflict_error(const std::vector<Conflict>& conflicts) {
  ApiError error{.code = 409, .reason = "Conflict", .has_details = true};
  for (const Conflict& one : conflicts) {
    error.causes.push_back(Cause{.field = one.path,
                                 .message = fmt::format("conflict with {}", shown(*one.manager)),
                                 .reason = "FieldManagerConflict"});
  }
  if (conflicts.size() == 1) {
    error.message = fmt::format("Apply failed with 1 conflict: conflict with {}: {}",
                                shown(*conflicts.front().manager), conflicts.front().path);
    return error;
  }
  std::vector<std::string> lines;
  const Manager* last = nullptr;
  for (const Conflict& one : conflicts) {
    if (one.manager != last)
      lines.push_back(fmt::format("conflicts with {}:", shown(*one.manager)));
    last = one.manager;
    lines.push_back("- " + one.path);
  }
  error.message =
      fmt::format("Apply failed with {} conflicts: {}", conflicts.size(), fmt::join(lines, "\n"));
  return error;
}

// kubectl may take over what it applied before from the client's side: that is written in an
// annotation, and the fields belong to another of its names.
bool was_applied_by_kubectl(const Json& live, const std::vector<Conflict>& conflicts,
                            const ResourceType& type, const Writer& writer) {
  if (writer.manager != "kubectl") return false;
  const auto last = parse_json(string_or(
      at(live, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")));
  if (!last || !last->is_object()) return false;
  std::set<std::string> paths;
  fields_of(*last, MergeType::of(type)).for_each([&](const std::string& path) {
    paths.insert(path);
  });
  return std::ranges::all_of(conflicts,
                             [&](const Conflict& one) { return paths.contains(one.path); });
}

}  // namespace

std::vector<Manager> managers_of(const Json& object) {
  std::vector<Manager> managers;
  const Json* list = at(object, "metadata", "managedFields");
  if (list == nullptr || !list->is_array()) return managers;
  for (const Json& entry : list->as_array()) {
    const Json* fields = grapnel::find(entry, "fieldsV1");
    Manager one{.name = std::string(string_or(grapnel::find(entry, "manager"))),
                .applied = string_or(grapnel::find(entry, "operation")) == "Apply",
                .api_version = std::string(string_or(grapnel::find(entry, "apiVersion"))),
                .subresource = std::string(string_or(grapnel::find(entry, "subresource"))),
                .time = std::string(string_or(grapnel::find(entry, "time"))),
                .fields = fields == nullptr ? FieldSet() : FieldSet::from_json(*fields)};
    if (!one.fields.empty()) managers.push_back(std::move(one));
  }
  return managers;
}

void set_managers(JsonObject& object, std::vector<Manager> managers) {
  JsonObject& meta = ensure_object(object, "metadata");
  if (managers.empty()) {
    meta.erase("managedFields");
    return;
  }
  // Applies first, then by time.
  std::sort(managers.begin(), managers.end(), [](const Manager& a, const Manager& b) {
    return std::tuple(!a.applied, a.time, a.name, a.api_version, a.subresource) <
           std::tuple(!b.applied, b.time, b.name, b.api_version, b.subresource);
  });
  JsonArray list;
  for (const Manager& one : managers) {
    JsonObject entry{{"manager", one.name},
                     {"operation", one.applied ? "Apply" : "Update"},
                     {"apiVersion", one.api_version}};
    if (!one.time.empty()) entry["time"] = one.time;
    entry["fieldsType"] = "FieldsV1";
    entry["fieldsV1"] = one.fields.to_json();
    if (!one.subresource.empty()) entry["subresource"] = one.subresource;
    list.emplace_back(std::move(entry));
  }
  meta["managedFields"] = std::move(list);
}

void record_update(Json& object, const Json& old, const ResourceType& type, const Writer& writer) {
  const MergeType shape = MergeType::of(type);
  // What the client says of managers counts when it says anything.
  const Json* given = at(object, "metadata", "managedFields");
  std::vector<Manager> managers = managers_of(given != nullptr && given->is_array() ? object : old);
  Difference difference = compare(or_empty(old), object, shape);
  for (FieldSet* set : {&difference.added, &difference.modified, &difference.removed}) {
    strip(*set, type, writer.subresource);
  }
  FieldSet gained = difference.added;
  gained.add(difference.modified);
  const Manager self{
      .name = writer.manager, .api_version = type.api_version(), .subresource = writer.subresource};
  for (Manager& one : managers) {
    if (!one.is(self)) one.fields.remove(gained);
    one.fields.remove(difference.removed);
  }
  if (!gained.empty()) {
    Manager* own = find(managers, self);
    if (own == nullptr) own = &managers.emplace_back(self);
    own->fields.add(gained);
    own->time = format_time(writer.now);
  }
  drop_empty(managers);
  set_managers(object.as_object(), std::move(managers));
}

Answer<Json> apply_config(const Json& live, Json config, const ResourceType& type,
                          const Writer& writer, bool force) {
  const MergeType shape = MergeType::of(type);
  JsonObject& fields = config.as_object();
  if (const Json* given = grapnel::find(fields["metadata"], "managedFields");
      given != nullptr && !given->is_null() && !(given->is_array() && given->as_array().empty())) {
    return Refusal(bad_request("metadata.managedFields must be nil"));
  }
  ensure_object(fields, "metadata").erase("managedFields");
  std::vector<Manager> managers = managers_of(live);
  const Json& before = or_empty(live);
  if (managers.empty() && !live.is_null()) {
    // Nobody was recorded: what is there belongs to someone before.
    FieldSet all = fields_of(before, shape);
    strip(all, type, writer.subresource);
    managers.push_back({.name = "before-first-apply",
                        .api_version = type.api_version(),
                        .time = format_time(writer.now),
                        .fields = std::move(all)});
  }
  Manager self{.name = writer.manager,
               .applied = true,
               .api_version = type.api_version(),
               .subresource = writer.subresource};
  if (const std::string twice = repeated_element(config, shape); !twice.empty()) {
    return Refusal(ApiError{
        .code = 500, .message = fmt::format("failed to create typed patch object: {}", twice)});
  }
  FieldSet wanted = fields_of(config, shape);
  strip(wanted, type, writer.subresource);

  Json merged = merge(before, config, shape);
  FieldSet last;
  if (Manager* own = find(managers, self)) {
    last = own->fields;
    self.time = own->time;
    std::erase_if(managers, [&self](const Manager& one) { return one.is(self); });
  }
  FieldSet managed = wanted;
  for (const Manager& one : managers) managed.add(one.fields);
  drop_unowned(merged, shape, last, managed);

  Difference difference = compare(before, merged, shape);
  FieldSet gained = difference.added;
  gained.add(difference.modified);
  std::vector<Conflict> conflicts;
  for (Manager& one : managers) {
    const FieldSet both = one.fields.intersection(gained);
    both.for_each([&](const std::string& path) { conflicts.push_back({&one, path}); });
  }
  if (!conflicts.empty() && !force && !was_applied_by_kubectl(live, conflicts, type, writer)) {
    return Refusal(conflict_error(conflicts));
  }
  for (Manager& one : managers) {
    one.fields.remove(gained);
    one.fields.remove(difference.removed);
  }
  // A writer that only agrees with what is there has changed nothing, and gets no new time.
  if (!gained.empty() || !difference.removed.empty()) self.time = format_time(writer.now);
  self.fields = std::move(wanted);
  managers.push_back(std::move(self));
  drop_empty(managers);
  set_managers(merged.as_object(), std::move(managers));
  return merged;
}

}  // namespace grapnel::local
