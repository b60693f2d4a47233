// grapnel submit, list, cancel, delete, retry: experiments on any cluster.
#include <iostream>

#include "api/experiment.h"
#include "cli/code_package.h"
#include "cli/commands.h"
#include "cli/experiment.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/submission.h"
#include "cli/table.h"
#include "cli/target.h"
#include "cli/tree.h"
#include "document/elements.h"
#include "kube/kind.h"
#include "operators/experiment/check.h"
#include "operators/experiment/code.h"
#include "operators/experiment/names.h"

namespace grapnel::cli {
namespace {

using kube::kinds::kExperiment;

constexpr std::string_view kRetryOf = "grapnel.dev/retry-of";

std::string table_of(const std::vector<api::Experiment>& experiments, Output output, bool with_ns) {
  std::vector<std::string> headings{"NAME", "OPERATOR", "PHASE", "PROCESSES", "AGE"};
  if (with_ns) headings.insert(headings.begin(), "NAMESPACE");
  if (output == Output::kWide) headings.push_back("MESSAGE");
  Table table(headings);
  for (const auto& e : experiments) {
    std::vector<std::string> row{
        e.meta.name(), std::string(api::name_of(e.spec.op)),
        std::string(e.status.phase ? api::name_of(*e.status.phase) : "Pending"),
        processes(e.status), age(e, system_clock().now())};
    if (with_ns) row.insert(row.begin(), std::string(e.meta.ns()));
    if (output == Output::kWide) row.push_back(e.status.message);
    table.add(std::move(row));
  }
  return table.text();
}

Task<int> do_list(Executor executor, ExperimentOptions options) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  const auto list =
      co_await to->client->list(kExperiment, {.ns = options.all_namespaces ? "" : to->ns});
  if (!list) co_return report(explained(list.error()), kFailed);
  if (is_document(options.output)) {
    print_document(*list, options.output);
    co_return kOk;
  }
  std::vector<api::Experiment> experiments;
  for (const Json& item : elements(find(*list, "items"))) {
    auto decoded = api::decode_resource<api::Experiment>(item);
    if (!decoded) co_return report(decoded.error(), kFailed);
    experiments.push_back(std::move(*decoded));
  }
  if (options.output == Output::kName) {
    for (const auto& e : experiments) std::cout << e.meta.name() << "\n";
  } else if (experiments.empty()) {
    std::cerr << "there are no experiments"
              << (options.all_namespaces ? "" : fmt::format(" in namespace {}", to->ns)) << "\n";
  } else {
    std::cout << table_of(experiments, options.output, options.all_namespaces);
  }
  co_return kOk;
}

Task<int> do_submit(Executor executor, const experiment::Manifest& manifest, std::string name,
                    Target target, bool with_code) {
  auto to = connect_to(executor, target);
  if (!to) co_return report(to.error(), kUsage);
  SubmissionOptions options{.name = name, .ns = to->ns, .is_laptop = to->is_laptop};
  if (with_code) {
    const auto here = working_directory();
    if (!here) co_return report(here.error(), kUsage);
    auto packed = co_await pack_code(*here);
    if (!packed) co_return report(packed.error(), kUsage);
    options.code = std::move(*packed);
  }
  const auto created = co_await submit_manifest(*to->client, manifest, std::move(options));
  if (!created) co_return report(explained(created.error()), kFailed);
  std::cout << name << "\n";
  co_return kOk;
}

Task<int> do_cancel(Executor executor, ExperimentOptions options) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  const auto experiment = co_await get_experiment(*to->client, {Interned(to->ns), options.name});
  if (!experiment) co_return report(experiment.error(), kFailed);
  if (experiment->status.end_time) {
    std::cout << fmt::format("{} has ended already: {}\n", options.name,
                             api::name_of(*experiment->status.phase));
    co_return kOk;
  }
  const auto asked = co_await to->client->patch(kExperiment, {.ns = to->ns, .name = options.name},
                                                kube::PatchType::kMerge,
                                                JsonObject{{"spec", JsonObject{{"cancel", true}}}});
  if (!asked) co_return report(explained(asked.error(), options.name), kFailed);
  std::cout << options.name << " is being cancelled\n";
  co_return kOk;
}

Task<int> do_remove(Executor executor, ExperimentOptions options) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  const auto removed = co_await to->client->remove(
      kExperiment, {.ns = to->ns, .name = options.name}, {.propagation = "Background"});
  if (!removed) co_return report(explained(removed.error(), options.name), kFailed);
  std::cout << options.name << " deleted\n";
  co_return kOk;
}

// What the user wrote, without what has become of it.
Json again(const Json& experiment, const std::string& ns, const std::string& name) {
  const Json* written = find(experiment, "spec");
  JsonObject spec =
      written != nullptr && written->is_object() ? written->as_object() : JsonObject();
  spec.erase("cancel");
  JsonObject annotations{{kRetryOf, string_or(at(experiment, "metadata", "name"))}};
  const Json* old = at(experiment, "metadata", "annotations");
  if (old != nullptr && old->is_object()) {
    for (const auto& [key, value] : old->as_object()) {
      if (key.starts_with("grapnel.dev/") && key != kRetryOf) annotations[key] = value;
    }
  }
  return JsonObject{
      {"apiVersion", kExperiment.api_version()},
      {"kind", kExperiment.kind},
      {"metadata", JsonObject{{"name", name}, {"namespace", ns}, {"annotations", annotations}}},
      {"spec", std::move(spec)}};
}

Task<int> do_retry(Executor executor, ExperimentOptions options) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  const auto found = co_await get_experiment_object(*to->client, {Interned(to->ns), options.name});
  if (!found) co_return report(found.error(), kFailed);
  const auto before = api::decode_resource<api::Experiment>(*found);
  if (!before) co_return report(before.error(), kFailed);
  const auto components = experiment::check(*before);
  if (!components) co_return report(components.error(), kFailed);
  const auto name =
      name_with_ending(options.name, experiment::name_limit(before->spec, *components));
  if (!name) co_return report(name.error(), kFailed);
  const auto created = co_await to->client->create(kExperiment, again(*found, to->ns, *name));
  if (!created) co_return report(created.error(), kFailed);
  const auto code = string_or(at(*created, "metadata", "annotations", experiment::kCodeAnnotation));
  if (!code.empty()) {
    const auto owned =
        co_await own_code(*to->client, {.ns = to->ns, .name = std::string(code)}, *created);
    if (!owned) std::cerr << "the code of the first try: " << owned.error().message << "\n";
  }
  std::cout << *name << "\n";
  co_return kOk;
}

}  // namespace

int submit(const ManifestOptions& options, const Target& target) {
  const auto manifest = read_manifest(options.file);
  if (!manifest) return report(manifest.error(), kUsage);
  const auto name = experiment_name(*manifest, options);
  if (!name) return report(name.error(), kUsage);
  return run_loop([&](Executor executor) {
    return do_submit(executor, *manifest, *name, target, options.with_code);
  });
}

int list_experiments(const ExperimentOptions& options) {
  return run_loop([&](Executor executor) { return do_list(executor, options); });
}
int cancel(const ExperimentOptions& options) {
  return run_loop([&](Executor executor) { return do_cancel(executor, options); });
}
int remove_experiment(const ExperimentOptions& options) {
  return run_loop([&](Executor executor) { return do_remove(executor, options); });
}
int retry(const ExperimentOptions& options) {
  return run_loop([&](Executor executor) { return do_retry(executor, options); });
}

}  // namespace grapnel::cli
