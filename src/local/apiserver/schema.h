// The structural schema of a custom resource: prunes, fills in defaults and validates, with one
// pass over the object each.
#pragma once

#include <string>
#include <vector>

#include "document/json.h"
#include "local/apiserver/status.h"

namespace grapnel::local {

// Removes what the schema does not know, and returns the paths of what was removed.
std::vector<std::string> prune(const Json& schema, Json& object);
void fill_defaults(const Json& schema, Json& object);
void validate_schema(const Json& schema, const Json& object, FieldErrors& errors);
// Only the status, as a write of it is validated.
void validate_status(const Json& schema, const Json& object, FieldErrors& errors);

// What is wrong with a schema itself: it must be structural, and its defaults valid.
void check_schema(const Json& schema, const std::string& path, FieldErrors& errors);

}  // namespace grapnel::local
