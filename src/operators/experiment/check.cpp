#include "operators/experiment/check.h"

#include "operators/experiment/names.h"

namespace grapnel::experiment {

Result<Components> check(const api::Experiment& experiment) {
  api::Faults faults;
  Components components = validate(experiment.spec, faults);
  const auto limit = name_limit(experiment.spec, components);
  if (const auto why = why_not_name(experiment.meta.name(), limit); !why.empty()) {
    const api::Path metadata("metadata");
    faults.invalid({metadata, "name"}, experiment.meta.name(), why);
  }
  if (!faults.empty()) return fail(faults.error("Experiment " + experiment.meta.key.text()));
  return components;
}

}  // namespace grapnel::experiment
