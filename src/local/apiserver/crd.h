// CustomResourceDefinitions: what one defines, and the kinds that come from it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "document/json.h"
#include "local/apiserver/resource_type.h"
#include "local/apiserver/status.h"

namespace grapnel::local {

struct PrinterColumn {
  std::string name;
  std::string type;
  std::string format;
  std::string description;
  int64_t priority = 0;
  std::string path;  // .status.phase
};

// What one version of a definition says about its objects.
struct CustomVersion {
  Json schema;  // openAPIV3Schema; null: none
  bool preserves_unknown = false;
  std::vector<PrinterColumn> columns;
  std::string scale_spec_path;  // .spec.replicas
  std::string scale_status_path;
  std::string scale_selector_path;
};

// The served versions of a definition, the stored one's bytes shared by all.
std::vector<TypePtr> types_of_definition(const Json& definition);

// Fills in names and the conditions: it is established at once.
void complete_definition(JsonObject& definition, Time now);
void validate_definition(const Json& definition, FieldErrors& errors);
// What a definition asks for and this server does not do.
void warn_of_definition(const Json& definition, std::vector<std::string>& warnings);
void validate_definition_update(const Json& definition, const Json& old, FieldErrors& errors);

void custom_defaults(const CustomVersion& version, Json& object);
// `status`: only the status is being written.
void custom_validate(const CustomVersion& version, const Json& object, bool status,
                     FieldErrors& errors);

}  // namespace grapnel::local
