#include "cli/submission.h"

#include <array>
#include <cstdlib>
#include <filesystem>

#include "http/certificates.h"
#include "kube/kind.h"
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

Task<Result<Json>> submit_manifest(kube::Client& client, const experiment::Manifest& manifest,
                                   SubmissionOptions options) {
  Json object = experiment::experiment_of(manifest, options.name, options.ns);
  if (options.is_laptop) {
    object.at("metadata").as_object()["annotations"] =
        JsonObject{{experiment::kWorkDirectoryAnnotation, std::filesystem::current_path().string()},
                   {experiment::kEnvironmentAnnotation, callers_environment()}};
  }
  co_return co_await client.create(kube::kinds::kExperiment, std::move(object));
}

Result<std::string> name_with_ending(std::string_view stem) {
  constexpr size_t kLongest = 30;  // leaves room for the names of Jobs and pods
  const auto ending = http::random_token(2);
  if (!ending) return fail(ending.error());
  std::string name(stem.substr(0, kLongest));
  while (!name.empty() && name.back() == '-') name.pop_back();
  return fmt::format("{}-{}", name, *ending);
}

}  // namespace grapnel::cli
