// What the API server is told about the templates that we carry through whole: enough to refuse a
// wrong type at once and to set the defaults, little enough to keep a CRD small.
#pragma once

#include "document/json.h"

namespace grapnel::api {

// batch/v1 JobTemplateSpec; completionMode and restartPolicy default as a JobSet's do.
JsonObject job_template_schema();
// core/v1 PodTemplateSpec. With `restart_policy` not empty, that is its default.
JsonObject pod_template_schema(std::string_view restart_policy = "");
// A list of PersistentVolumeClaims.
JsonObject volume_claims_schema();

}  // namespace grapnel::api
