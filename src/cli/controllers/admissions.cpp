#include "cli/controllers/admissions.h"

#include <fmt/format.h>

#include "api/experiment.h"
#include "api/jobset.h"
#include "operators/experiment/compile.h"
#include "operators/jobset/defaults.h"
#include "operators/jobset/names.h"
#include "operators/jobset/placement.h"
#include "operators/jobset/validate.h"

namespace grapnel::cli {
namespace {

using runtime::Admitted;

// The paths of the original controller, so that its configurations can be kept.
constexpr std::string_view kMutateJobSet = "/mutate-jobset-x-k8s-io-v1alpha2-jobset";
constexpr std::string_view kValidateJobSet = "/validate-jobset-x-k8s-io-v1alpha2-jobset";
constexpr std::string_view kMutatePod = "/mutate--v1-pod";
constexpr std::string_view kValidateExperiment = "/validate-grapnel-dev-v1alpha1-experiment";

Failure refuse(std::string_view kind, const Json& object, std::vector<Cause> causes) {
  std::string message =
      fmt::format("{} \"{}\" is invalid: ", kind, string_or(at(object, "metadata", "name")));
  for (size_t i = 0; i < causes.size(); ++i) {
    message += fmt::format("{}{}: {}", i == 0 ? "" : "; ", causes[i].field, causes[i].message);
  }
  return fail(Error{
      .reason = Reason::kInvalid, .message = std::move(message), .causes = std::move(causes)});
}

bool is_being_deleted(const Json& object) {
  return at(object, "metadata", "deletionTimestamp") != nullptr;
}

Result<Json> validate_jobset(const Admitted& request, bool strict) {
  // Finalizers must be able to go, whatever the object says.
  if (is_being_deleted(request.object)) return request.object;
  const auto jobset = api::decode_jobset(request.object);
  if (!jobset) return refuse("JobSet", request.object, jobset.error().causes);
  auto causes = strict ? jobset::validate_strictly(*jobset) : jobset::validate(*jobset);
  if (request.operation == "UPDATE") {
    if (const auto before = api::decode_jobset(request.before)) {
      causes = strict ? jobset::validate_update_strictly(*before, *jobset)
                      : jobset::validate_update(*before, *jobset);
    }
  }
  if (!causes.empty()) return refuse("JobSet", request.object, std::move(causes));
  return request.object;
}

Result<Json> validate_experiment(const Admitted& request) {
  if (is_being_deleted(request.object)) return request.object;
  const auto experiment = api::decode_resource<api::Experiment>(request.object);
  if (!experiment) return refuse("Experiment", request.object, experiment.error().causes);
  const auto compiled = experiment::compile(*experiment);
  if (!compiled) return refuse("Experiment", request.object, compiled.error().causes);
  return request.object;
}

struct Hook {
  std::string_view name;
  std::string_view path;
  std::string_view group;
  std::string_view version;
  std::string_view resource;
  JsonArray operations;
};

Json webhook(const Hook& hook, const std::string& ns, const std::string& service) {
  return JsonObject{
      {"name", hook.name},
      {"admissionReviewVersions", JsonArray{"v1"}},
      {"sideEffects", "None"},
      {"failurePolicy", "Fail"},
      {"timeoutSeconds", 10},
      {"clientConfig",
       JsonObject{
           {"service", JsonObject{{"namespace", ns}, {"name", service}, {"path", hook.path}}}}},
      {"rules", JsonArray{JsonObject{{"apiGroups", JsonArray{hook.group}},
                                     {"apiVersions", JsonArray{hook.version}},
                                     {"resources", JsonArray{hook.resource}},
                                     {"operations", hook.operations}}}}};
}

Json configuration(std::string_view kind, JsonArray webhooks) {
  return JsonObject{{"apiVersion", "admissionregistration.k8s.io/v1"},
                    {"kind", kind},
                    {"metadata", JsonObject{{"name", "grapnel"}}},
                    {"webhooks", std::move(webhooks)}};
}

}  // namespace

void add_admissions(runtime::Admission& admission, bool strict) {
  admission.add(std::string(kMutateJobSet), [](const Admitted& request) -> Result<Json> {
    return jobset::defaulted_object(request.object);
  });
  admission.add(std::string(kValidateJobSet),
                [strict](const Admitted& request) { return validate_jobset(request, strict); });
  admission.add(std::string(kMutatePod), [](const Admitted& request) -> Result<Json> {
    return jobset::admitted_pod(request.object);
  });
  admission.add(std::string(kValidateExperiment), validate_experiment);
}

Json validating_webhooks(const std::string& ns, const std::string& service) {
  return configuration("ValidatingWebhookConfiguration",
                       {webhook({.name = "vjobset.grapnel.dev",
                                 .path = kValidateJobSet,
                                 .group = "jobset.x-k8s.io",
                                 .version = "v1alpha2",
                                 .resource = "jobsets",
                                 .operations = {"CREATE", "UPDATE"}},
                                ns, service),
                        webhook({.name = "vexperiment.grapnel.dev",
                                 .path = kValidateExperiment,
                                 .group = "grapnel.dev",
                                 .version = "v1alpha1",
                                 .resource = "experiments",
                                 .operations = {"CREATE", "UPDATE"}},
                                ns, service)});
}

Json mutating_webhooks(const std::string& ns, const std::string& service) {
  Json pods = webhook({.name = "mpod.grapnel.dev",
                       .path = kMutatePod,
                       .group = "",
                       .version = "v1",
                       .resource = "pods",
                       .operations = {"CREATE"}},
                      ns, service);
  // No other pod of the cluster waits for us, nor one of a JobSet that has nothing to be changed.
  pods.as_object()["objectSelector"] = JsonObject{
      {"matchExpressions",
       JsonArray{JsonObject{{"key", jobset::keys::kJobSetName}, {"operator", "Exists"}}}}};
  pods.as_object()["matchConditions"] = JsonArray{JsonObject{
      {"name", "is-to-be-changed"}, {"expression", jobset::needs_admission_expression()}}};
  return configuration("MutatingWebhookConfiguration", {webhook({.name = "mjobset.grapnel.dev",
                                                                 .path = kMutateJobSet,
                                                                 .group = "jobset.x-k8s.io",
                                                                 .version = "v1alpha2",
                                                                 .resource = "jobsets",
                                                                 .operations = {"CREATE"}},
                                                                ns, service),
                                                        std::move(pods)});
}

}  // namespace grapnel::cli
