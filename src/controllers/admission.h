// What our webhooks answer, and how the API server is told of them. All of it follows from table.h;
// the paths are those of the original controllers, so that their configurations can be kept:
// /mutate-jobset-x-k8s-io-v1alpha2-jobset, /validate-….
#pragma once

#include <string>

#include "document/json.h"
#include "runtime/admission.h"

namespace grapnel::controllers {

// With `strict`, JobSets are judged as the original controller judges them.
void add_admissions(runtime::Admission& admission, bool strict = false);

// The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration, for a Service of this
// name. The operator fills in the authority itself.
Json validating_webhooks(const std::string& ns, const std::string& service);
Json mutating_webhooks(const std::string& ns, const std::string& service);

}  // namespace grapnel::controllers
