// The shapes of built-in kinds as OpenAPI schemas: what `kubectl explain` shows.
#pragma once

#include <string>

#include "document/json.h"
#include "kube/types/type_info.h"

namespace grapnel::local {

// "core/v1.PodSpec" is io.k8s.api.core.v1.PodSpec.
std::string schema_name(const kube::TypeInfo& type);
// Adds the schema of the type, and of all types it holds, under their names.
void add_schema(const kube::TypeInfo& type, JsonObject& schemas);

}  // namespace grapnel::local
