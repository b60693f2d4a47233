#include "cli/experiment.h"

#include "kube/kind.h"

namespace grapnel::cli {

Error no_experiment(const std::string& name) {
  return {.reason = Reason::kNotFound,
          .message = fmt::format(
              "there is no experiment '{}'; `grapnel list` shows those there are", name)};
}

Error explained(Error error, const std::string& name) {
  return error.reason == Reason::kNotFound ? no_experiment(name) : error;
}

Task<Result<Json>> get_experiment_object(kube::Client& client, kube::Key key) {
  auto found =
      co_await client.get(kube::kinds::kExperiment, {.ns = key.ns.str(), .name = key.name});
  if (!found) co_return fail(explained(std::move(found.error()), key.name));
  co_return found;
}

Task<Result<api::Experiment>> get_experiment(kube::Client& client, kube::Key key) {
  const auto found = co_await get_experiment_object(client, key);
  if (!found) co_return fail(found.error());
  co_return api::decode_resource<api::Experiment>(*found);
}

}  // namespace grapnel::cli
