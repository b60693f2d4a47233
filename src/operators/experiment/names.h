// How long the name of an experiment may be. Jobs, pods and the coordinator's address are named
// after it, and none of those names may have more than 63 characters.
#pragma once

#include <string>
#include <string_view>

#include "operators/experiment/components.h"

namespace grapnel::experiment {

struct NameLimit {
  size_t longest = 63;
  std::string because = "Kubernetes";  // "operator 'jax'", "type 'worker'": what allows no more
};
NameLimit name_limit(const api::ExperimentSpec& spec, const Components& components);

// In words for a person; "" when the name will do.
std::string why_not_name(std::string_view name, const NameLimit& limit);

// The beginning of a name that we make ourselves. Our ending, such as "-6f4a", fits behind it.
std::string fitted_stem(std::string_view stem, const NameLimit& limit);

// Types whose own names leave no room for the experiment's.
void check_type_names(const api::ExperimentSpec& spec, const Components& components,
                      api::Faults& faults);

}  // namespace grapnel::experiment
