#include "api/experiment.h"

namespace grapnel::api {

bool Experiment::operator==(const Experiment& other) const {
  return meta == other.meta && equal_values(spec, other.spec) && equal_values(status, other.status);
}

ResourceInfo Resource<Experiment>::info() {
  return {.kind = kube::kinds::kExperiment,
          .singular = "experiment",
          .short_names = {"exp"},
          .categories = {"all", "grapnel"},
          .columns = {{"Operator", "string", ".spec.operator"},
                      {"Phase", "string", ".status.phase"},
                      {"Restarts", "integer", ".status.restarts"},
                      {"Age", "date", ".metadata.creationTimestamp"},
                      {"Message", "string", ".status.message", 1}}};
}

kube::MetaOptions Resource<Experiment>::kept_metadata() {
  return {
      .annotations = {"grapnel.dev/code", "grapnel.dev/environment", "grapnel.dev/work-directory"}};
}

}  // namespace grapnel::api
