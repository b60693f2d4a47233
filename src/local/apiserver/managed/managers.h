// metadata.managedFields: who owns which fields of an object, kept through updates and applies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "document/json.h"
#include "local/apiserver/managed/field_set.h"
#include "local/apiserver/resource_type.h"
#include "local/apiserver/status.h"

namespace grapnel::local {

struct Manager {
  std::string name;
  bool applied = false;  // operation Apply, otherwise Update
  std::string api_version;
  std::string subresource;
  std::string time;
  FieldSet fields;

  bool is(const Manager& other) const {
    return name == other.name && applied == other.applied && api_version == other.api_version &&
           subresource == other.subresource;
  }
};

std::vector<Manager> managers_of(const Json& object);
void set_managers(JsonObject& object, std::vector<Manager> managers);

// The writer, and the time.
struct Writer {
  std::string manager;
  std::string subresource;
  Time now{};
};

// After a create, update or patch: the writer owns what it changed, others lose it. `old` is null
// for a creation.
void record_update(Json& object, const Json& old, const ResourceType& type, const Writer& writer);

// Lays the config over the live object (null: there is none) and records what the writer owns now.
// Fields of others that would change are a conflict unless forced.
Answer<Json> apply_config(const Json& live, Json config, const ResourceType& type,
                          const Writer& writer, bool force);

}  // namespace grapnel::local
