// grapnel plan: what `grapnel submit` would do, asked of the cluster but not done.
#include <iostream>

#include "cli/commands.h"
#include "cli/experiment.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/plan_text.h"
#include "cli/submission.h"
#include "cli/target.h"
#include "kube/kind.h"

namespace grapnel::cli {
namespace {

// The server's word on a create, nothing being created.
Task<Result<>> would_take(kube::Client& client, kube::Kind kind, Json object) {
  const auto created = co_await client.create(kind, std::move(object), {.dry_run = true});
  if (!created) co_return fail(created.error());
  co_return Result<>();
}

Error refusal(const kube::Kind& kind, const Error& error) {
  if (is_unknown_kind(error)) return unknown_kind(error, kind);
  return {.reason = error.reason,
          .message = fmt::format("the cluster would refuse the {}: {}", kind.kind, error.message)};
}

Task<int> show(Executor executor, const experiment::Manifest& manifest, std::string name,
               Target target) {
  auto to = connect_to(executor, target);
  if (!to) co_return report(to.error(), kUsage);
  const Json object =
      experiment_object(manifest, {.name = name, .ns = to->ns, .is_laptop = to->is_laptop});
  const auto experiment = api::decode_resource<api::Experiment>(object);
  if (!experiment) co_return report(experiment.error(), kUsage);
  auto compiled = experiment::check_and_compile(*experiment);
  if (!compiled) co_return report(compiled.error(), kUsage);

  const auto existing =
      co_await to->client->get(kube::kinds::kExperiment, {.ns = to->ns, .name = name});
  if (!existing && existing.error().reason != Reason::kNotFound) {
    co_return report(existing.error(), kFailed);
  }
  std::cout << plan_text({.where = fmt::format("{}, namespace {}", to->cluster.description, to->ns),
                          .experiment = object,
                          .child = *compiled,
                          .existing = existing ? &*existing : nullptr});
  if (existing) co_return kFailed;
  if (const auto taken = co_await would_take(*to->client, kube::kinds::kExperiment, object);
      !taken) {
    co_return report(refusal(kube::kinds::kExperiment, taken.error()), kFailed);
  }
  // Its owner does not exist yet.
  compiled->object.at("metadata").as_object().erase("ownerReferences");
  if (const auto taken = co_await would_take(*to->client, *compiled->kind, compiled->object);
      !taken) {
    co_return report(refusal(*compiled->kind, taken.error()), kFailed);
  }
  std::cout << "The cluster would accept it.\n";
  co_return kOk;
}

}  // namespace

int plan(const ManifestOptions& options, const Target& target) {
  const auto manifest = read_manifest(options.file);
  if (!manifest) return report(manifest.error(), kUsage);
  const auto name = experiment_name(*manifest, options);
  if (!name) return report(name.error(), kUsage);
  return run_loop([&](Executor executor) { return show(executor, *manifest, *name, target); });
}

}  // namespace grapnel::cli
