// What our webhooks answer, and how the API server is told of them.
#pragma once

#include <string>

#include "document/json.h"
#include "runtime/admission.h"

namespace grapnel::cli {

// With `strict`, JobSets are judged as the original controller judges them.
void add_admissions(runtime::Admission& admission, bool strict = false);

// The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration, for a Service of this
// name. The operator fills in the authority itself.
Json validating_webhooks(const std::string& ns, const std::string& service);
Json mutating_webhooks(const std::string& ns, const std::string& service);

}  // namespace grapnel::cli
