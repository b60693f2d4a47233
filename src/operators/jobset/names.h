// What a JobSet's children are called.
#pragma once

#include <string>
#include <string_view>

#include "api/jobset.h"
#include "api/keys.h"

namespace grapnel::jobset {

namespace keys = api::keys::jobset;

inline constexpr std::string_view kControllerName = "jobset.sigs.k8s.io/jobset-controller";

std::string job_name(std::string_view jobset, std::string_view replicated_job, int64_t index);
// Also the name of the headless Service.
std::string subdomain(const api::JobSet& jobset);
// <pod hostname>.<subdomain> of the coordinator; there must be one.
std::string coordinator_endpoint(const api::JobSet& jobset);
std::string claim_name(std::string_view jobset, std::string_view claim_template);
// Tells Jobs apart in labels, whose values are short.
std::string job_key(std::string_view ns, std::string_view job_name);

}  // namespace grapnel::jobset
