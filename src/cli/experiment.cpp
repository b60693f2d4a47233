#include "cli/experiment.h"

#include "kube/kind.h"

namespace grapnel::cli {

Error no_experiment(const std::string& name) {
  return {.reason = Reason::kNotFound,
          .message = fmt::format(
              "there is no experiment '{}'; `grapnel list` shows those there are", name)};
}

// A server says so in one of these ways; a namespace that is missing is a 404, too.
bool is_unknown_kind(const Error& error) {
  return error.code == 404 &&
         (error.message.find("page not found") != std::string::npos ||
          error.message.find("could not find the requested resource") != std::string::npos);
}

Error unknown_kind(const Error& error, const kube::Kind& kind) {
  return {.reason = error.reason,
          .message = fmt::format(
              "the cluster does not know the kind {}; `grapnel install` teaches it", kind.kind)};
}

Error explained(Error error, const std::string& name) {
  if (is_unknown_kind(error)) return unknown_kind(error);
  return error.reason == Reason::kNotFound && !name.empty() ? no_experiment(name) : error;
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
