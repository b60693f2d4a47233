#include "cli/submission.h"

#include <array>
#include <cstdlib>

#include "cli/code_package.h"
#include "cli/paths.h"
#include "document/elements.h"
#include "http/certificates.h"
#include "kube/kind.h"
#include "operators/experiment/code.h"
#include "operators/experiment/pod_template.h"

namespace grapnel::cli {
namespace {

// What decides which programs and libraries a shell finds: `python3` in a manifest is that of the
// environment in which the user stands, whichever shell started the cluster.
constexpr auto kPassedOn =
    std::to_array<const char*>({"PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV",
                                "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"});

std::string callers_environment() {
  JsonObject variables;
  for (const char* name : kPassedOn) {
    if (const char* value = std::getenv(name)) variables[name] = value;
  }
  return to_text(variables);
}

}  // namespace

Json experiment_object(const experiment::Manifest& manifest, const SubmissionOptions& options) {
  Json object = experiment::experiment_of(manifest, options.name, options.ns);
  if (const auto here = working_directory(); options.is_laptop && here) {
    object.at("metadata").as_object()["annotations"] =
        JsonObject{{experiment::kWorkDirectoryAnnotation, *here},
                   {experiment::kEnvironmentAnnotation, callers_environment()}};
  }
  if (!options.code.empty()) {
    Json& annotations = object.at("metadata").as_object()["annotations"];
    if (!annotations.is_object()) annotations = JsonObject();
    annotations.as_object()[experiment::kCodeAnnotation] = code_name(options.name);
  }
  return object;
}

Task<Result<Json>> submit_manifest(kube::Client& client, const experiment::Manifest& manifest,
                                   SubmissionOptions options) {
  if (const auto here = working_directory(); options.is_laptop && !here) {
    co_return fail(here.error());
  }
  // The code is there before the pods that ask for it, and goes with the experiment.
  if (!options.code.empty()) {
    const auto made = co_await client.create(
        kube::kinds::kConfigMap, code_config_map(options.name, options.ns, options.code));
    if (!made) co_return fail_in("the code", made.error());
  }
  auto created =
      co_await client.create(kube::kinds::kExperiment, experiment_object(manifest, options));
  if (options.code.empty()) co_return created;
  const kube::Where code{.ns = options.ns, .name = code_name(options.name)};
  if (!created) {
    (void)co_await client.remove(kube::kinds::kConfigMap, code);
    co_return created;
  }
  const auto owned = co_await own_code(client, code, *created);
  if (!owned) co_return fail_in("the code", owned.error());
  co_return created;
}

Task<Result<>> own_code(kube::Client& client, kube::Where code, Json experiment) {
  const auto found = co_await client.get(kube::kinds::kConfigMap, code);
  if (!found) co_return fail(found.error());
  JsonArray owners = elements(at(*found, "metadata", "ownerReferences"));
  owners.push_back(JsonObject{{"apiVersion", kube::kinds::kExperiment.api_version()},
                              {"kind", kube::kinds::kExperiment.kind},
                              {"name", string_or(at(experiment, "metadata", "name"))},
                              {"uid", string_or(at(experiment, "metadata", "uid"))}});
  const auto owned = co_await client.patch(
      kube::kinds::kConfigMap, code, kube::PatchType::kMerge,
      JsonObject{{"metadata", JsonObject{{"ownerReferences", std::move(owners)},
                                         {"resourceVersion",
                                          string_or(at(*found, "metadata", "resourceVersion"))}}}});
  if (!owned) co_return fail(owned.error());
  co_return Result<>();
}

Result<std::string> name_with_ending(std::string_view stem, const experiment::NameLimit& limit) {
  const auto ending = http::random_token(2);
  if (!ending) return fail(ending.error());
  return fmt::format("{}-{}", experiment::fitted_stem(stem, limit), *ending);
}

}  // namespace grapnel::cli
