#include "operators/jobset/network.h"

#include "operators/common/object.h"
#include "operators/jobset/names.h"

namespace grapnel::jobset {

runtime::Create headless_service(const api::JobSet& jobset) {
  JsonObject metadata{{"name", subdomain(jobset)},
                      {"namespace", jobset.meta.ns()},
                      {"ownerReferences", operators::owned_by(jobset)}};
  JsonObject spec{{"clusterIP", "None"},
                  {"selector", JsonObject{{keys::kJobSetName, jobset.meta.name()}}},
                  {"publishNotReadyAddresses", jobset.spec.network.publish_not_ready_addresses}};
  return {.kind = &kube::kinds::kService,
          .object = JsonObject{{"apiVersion", kube::kinds::kService.api_version()},
                               {"kind", kube::kinds::kService.kind},
                               {"metadata", std::move(metadata)},
                               {"spec", std::move(spec)}}};
}

}  // namespace grapnel::jobset
