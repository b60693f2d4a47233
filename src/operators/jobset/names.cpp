#include "operators/jobset/names.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace grapnel::jobset {

std::string job_name(std::string_view jobset, std::string_view replicated_job, int64_t index) {
  return fmt::format("{}-{}-{}", jobset, replicated_job, index);
}

std::string subdomain(const api::JobSet& jobset) {
  const auto& asked = jobset.spec.network.subdomain;
  return asked.empty() ? jobset.meta.name() : asked;
}

std::string coordinator_endpoint(const api::JobSet& jobset) {
  const auto& coordinator = *jobset.spec.coordinator;
  return fmt::format("{}-{}-{}-{}.{}", jobset.meta.name(), coordinator.replicated_job,
                     coordinator.job_index, coordinator.pod_index, subdomain(jobset));
}

std::string claim_name(std::string_view jobset, std::string_view claim_template) {
  return fmt::format("{}-{}", claim_template, jobset);
}

std::string job_key(std::string_view ns, std::string_view job_name) {
  return sha1_hex(fmt::format("{}/{}", ns, job_name));
}

}  // namespace grapnel::jobset
