// grapnel validate, render, schema, crds, reference: what can be said without a cluster.
#include <cstdio>
#include <iostream>

#include "api/experiment.h"
#include "api/schema.h"
#include "base/strings.h"
#include "cli/code_package.h"
#include "cli/commands.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/object_check.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/submission.h"
#include "controllers/controllers.h"
#include "document/yaml.h"
#include "operators/experiment/compile.h"

namespace grapnel::cli {
namespace {

Result<std::string> pack_current_directory() {
  Result<std::string> packed = fail(Reason::kCancelled, "packing the code was cut off");
  run_loop([&packed](Executor) -> Task<int> {
    return [](Result<std::string>& out) -> Task<int> {
      const auto here = working_directory();
      out = here ? co_await pack_code(*here) : fail(here.error());
      co_return kOk;
    }(packed);
  });
  return packed;
}

}  // namespace

int validate(const ManifestOptions& options) {
  const auto read = read_text(options.file);
  if (!read) return report(read.error(), kUsage);
  if (const auto documents = parse_yaml(read->text); documents && holds_our_objects(*documents)) {
    const auto checked = check_objects(*documents, read->name);
    if (!checked) return report(checked.error(), kUsage);
    for (const auto& line : *checked) std::cout << line << "\n";
    return kOk;
  }
  const auto manifest = experiment::parse_manifest(read->text, read->name);
  if (!manifest) return report(manifest.error(), kUsage);
  if (const auto name = experiment_name(*manifest, options); !name) {
    return report(name.error(), kUsage);
  }
  std::cout << options.file << ": a valid manifest for operator "
            << api::name_of(manifest->decoded.op) << "\n";
  return kOk;
}

int render(const ManifestOptions& options) {
  const auto manifest = read_manifest(options.file);
  if (!manifest) return report(manifest.error(), kUsage);
  const auto name = experiment_name(*manifest, options);
  if (!name) return report(name.error(), kUsage);
  SubmissionOptions submission{.name = *name, .ns = options.ns};
  if (options.with_code) {
    auto packed = pack_current_directory();
    if (!packed) return report(packed.error(), kUsage);
    submission.code = std::move(*packed);
  }
  const auto experiment =
      api::decode_resource<api::Experiment>(experiment_object(*manifest, submission));
  if (!experiment) return report(experiment.error(), kUsage);
  auto compiled = experiment::check_and_compile(*experiment);
  if (!compiled) return report(compiled.error(), kUsage);
  // The owner's uid is known only once the Experiment exists.
  compiled->object.at("metadata").as_object().erase("ownerReferences");
  if (!submission.code.empty()) {
    print_document(code_config_map(*name, options.ns, submission.code), options.output);
    if (options.output == Output::kYaml) std::cout << "---\n";
  }
  print_document(compiled->object, options.output);
  return kOk;
}

int schema() {
  JsonObject spec = api::schema_of<api::ExperimentSpec>();
  // An editor offers what can be run.
  const auto operators = api::available_operators();
  spec["properties"].at("operator").as_object()["enum"] =
      JsonArray(operators.begin(), operators.end());
  const JsonObject manifest{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "AIchorManifest"},
      {"type", "object"},
      {"required", JsonArray{"kind", "apiVersion", "spec"}},
      {"properties",
       JsonObject{{"kind", JsonObject{{"const", "AIchorManifest"}}},
                  {"apiVersion", JsonObject{{"type", "string"}, {"pattern", "^0\\.2\\.[0-9]+$"}}},
                  {"name", JsonObject{{"type", "string"}}},
                  {"spec", std::move(spec)}}},
  };
  std::cout << to_pretty_text(manifest) << "\n";
  return kOk;
}

int print_crds() {
  for (const Json& crd : controllers::crds()) std::cout << "---\n" << to_yaml(crd);
  return kOk;
}

int print_reference(const std::string& kind) {
  for (const controllers::OurKind* each : controllers::our_kinds()) {
    if (kind.empty() || kind == to_lower(each->type.kind.kind)) {
      std::cout << each->type.reference_page();
    }
  }
  return kOk;
}

}  // namespace grapnel::cli
