// What a JobSet means where it says nothing. The API server sets the same from the CRD; these serve
// the webhook, `grapnel validate` and whatever has no CRD between.
#pragma once

#include "api/jobset.h"

namespace grapnel::jobset {

api::JobSet defaulted(api::JobSet jobset);

// The same on the object as it was sent, whose other fields stay as they are.
Json defaulted_object(Json object);

}  // namespace grapnel::jobset
