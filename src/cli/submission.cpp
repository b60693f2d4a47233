#include "cli/submission.h"

#include <filesystem>

#include "http/certificates.h"
#include "kube/kind.h"
#include "operators/experiment/pod_template.h"

namespace grapnel::cli {

Task<Result<Json>> submit_manifest(kube::Client& client, const experiment::Manifest& manifest,
                                   SubmissionOptions options) {
  Json object = experiment::experiment_of(manifest, options.name, options.ns);
  if (options.is_laptop) {
    object.at("metadata").as_object()["annotations"] = JsonObject{
        {experiment::kWorkDirectoryAnnotation, std::filesystem::current_path().string()}};
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
