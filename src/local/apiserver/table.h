// Table answers: what `kubectl get` prints, computed here.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "document/json.h"
#include "local/apiserver/api.h"

namespace grapnel::local {

struct TableOptions {
  enum class Include { kMetadata, kObject, kNone };
  Include include = Include::kMetadata;
  bool no_headers = false;
  Time now{};
  std::string version;  // resourceVersion of the list
  std::string next;     // continue
  int64_t remaining = 0;

  static TableOptions from(const Call& call, Time now);
};

Json table_of(const ResourceType& type, const std::vector<Json>& objects,
              const TableOptions& options);
// PartialObjectMetadata.
Json partial_of(const Json& object);

struct Column {
  std::string name;
  std::string type = "string";
  std::string format;
  std::string description;
  int64_t priority = 0;
};
std::vector<Column> columns_of(const ResourceType& type);
JsonArray cells_of(const ResourceType& type, const Json& object, Time now);

}  // namespace grapnel::local
