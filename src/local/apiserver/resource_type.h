// One served kind: its names, its scope, its subresources and its rules. The built-in ones are in
// one table (builtin_types.cpp); those of CustomResourceDefinitions are made from the definition.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "document/json.h"
#include "local/apiserver/status.h"

namespace grapnel::local {

struct CustomVersion;  // crd.h

struct Subresource {
  std::string name;   // "status"
  std::string kind;   // "Pod"
  std::string group;  // where it differs from the resource's own
  std::string version;
  std::vector<std::string> verbs;
};

struct ResourceType {
  std::string group;
  std::string version;
  std::string kind;
  std::string plural;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;
  std::vector<std::string> verbs;  // empty: all
  std::vector<Subresource> subresources;

  // Rules that are the same for many kinds are flags; the rest are functions.
  bool status_split = false;    // status is written through /status only, spec without it
  bool has_generation = false;  // metadata.generation counts changes outside metadata and status
  bool create_on_update = false;
  bool unconditional_update = true;
  bool returns_deleted = false;  // DELETE answers the object, not a Status
  bool graceful = false;         // deletion waits for the one who runs it (pods)
  bool stored = true;            // false: a question, not an object (SelfSubjectAccessReview)
  std::vector<std::string> field_selectors;  // beside metadata.name and metadata.namespace

  void (*set_defaults)(JsonObject& object) = nullptr;
  void (*prepare_create)(JsonObject& object) = nullptr;
  void (*prepare_update)(JsonObject& object, const Json& old) = nullptr;
  void (*validate)(const Json& object, FieldErrors& errors) = nullptr;
  void (*validate_update)(const Json& object, const Json& old, FieldErrors& errors) = nullptr;
  void (*validate_status)(const Json& object, FieldErrors& errors) = nullptr;
  // What is allowed but unwise.
  void (*warn)(const Json& object, std::vector<std::string>& warnings) = nullptr;
  std::string deprecation;  // said with every answer
  // What is wrong with a name of this kind; nullptr: a DNS subdomain.
  std::string (*why_not_name)(std::string_view name) = nullptr;

  // Set for a custom resource.
  std::shared_ptr<const CustomVersion> custom;
  // Another version of the same objects is the stored one: "v1". Empty: this is it.
  std::string storage_version;
  std::string storage_group;  // events.k8s.io keeps its objects with the core group

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  std::string list_kind() const;
  GroupResource group_resource() const { return {group, plural}; }
  // The collection in the store.
  std::string collection() const;
  const Subresource* subresource(std::string_view name) const;
  bool allows(std::string_view verb) const;
};
using TypePtr = std::shared_ptr<const ResourceType>;

}  // namespace grapnel::local
