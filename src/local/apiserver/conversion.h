// One object, several versions: how it is stored, and how each version shows it. Only two kinds
// need more than another apiVersion: the two Events share one store.
#pragma once

#include "document/json.h"
#include "local/apiserver/resource_type.h"

namespace grapnel::local {

void convert_from_storage(const ResourceType& type, Json& object);
void convert_to_storage(const ResourceType& type, Json& object);

}  // namespace grapnel::local
