#include "controllers/admission.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "controllers/table.h"

namespace grapnel::controllers {
namespace {

using runtime::Admitted;

std::string path_of(std::string_view verb, const kube::Kind& kind) {
  std::string group(kind.group);
  std::ranges::replace(group, '.', '-');
  return fmt::format("/{}-{}-{}-{}", verb, group, kind.version, to_lower(kind.kind));
}

Failure refuse(const kube::Kind& kind, const Json& object, Causes causes) {
  std::string message =
      fmt::format("{} \"{}\" is invalid: ", kind.kind, string_or(at(object, "metadata", "name")));
  for (size_t i = 0; i < causes.size(); ++i) {
    message += fmt::format("{}{}: {}", i == 0 ? "" : "; ", causes[i].field, causes[i].message);
  }
  return fail(Error{
      .reason = Reason::kInvalid, .message = std::move(message), .causes = std::move(causes)});
}

Result<Json> validate(const OurKind& kind, const Admitted& request, bool strict) {
  // Finalizers must be able to go, whatever the object says.
  if (at(request.object, "metadata", "deletionTimestamp") != nullptr) return request.object;
  const bool is_change = request.operation == "UPDATE" && kind.rules.faults_of_change;
  Causes causes = is_change ? kind.rules.faults_of_change(request.before, request.object, strict)
                            : kind.rules.faults(request.object, {.strict = strict});
  if (!causes.empty()) return refuse(kind.type.kind, request.object, std::move(causes));
  return request.object;
}

struct Webhook {
  std::string name;
  std::string path;
  kube::Kind kind;
  JsonArray operations;
};

JsonObject webhook(Webhook hook, const std::string& ns, const std::string& service) {
  return JsonObject{
      {"name", hook.name},
      {"admissionReviewVersions", JsonArray{"v1"}},
      {"sideEffects", "None"},
      {"failurePolicy", "Fail"},
      {"timeoutSeconds", 10},
      {"clientConfig",
       JsonObject{
           {"service", JsonObject{{"namespace", ns}, {"name", service}, {"path", hook.path}}}}},
      {"rules", JsonArray{JsonObject{{"apiGroups", JsonArray{hook.kind.group}},
                                     {"apiVersions", JsonArray{hook.kind.version}},
                                     {"resources", JsonArray{hook.kind.plural}},
                                     {"operations", std::move(hook.operations)}}}}};
}

// "vjobset.grapnel.dev", "mpod.grapnel.dev"
std::string name_of(char verb, const kube::Kind& kind) {
  return fmt::format("{}{}.grapnel.dev", verb, to_lower(kind.kind));
}

JsonObject webhook(const AdmissionHook& hook, const std::string& ns, const std::string& service) {
  JsonObject out = webhook({.name = name_of('m', hook.kind),
                            .path = std::string(hook.path),
                            .kind = hook.kind,
                            .operations = {"CREATE"}},
                           ns, service);
  out["objectSelector"] = hook.selector;
  if (!hook.condition.empty()) {
    out["matchConditions"] =
        JsonArray{JsonObject{{"name", hook.condition_name}, {"expression", hook.condition}}};
  }
  return out;
}

Json configuration(std::string_view kind, JsonArray webhooks) {
  return JsonObject{{"apiVersion", "admissionregistration.k8s.io/v1"},
                    {"kind", kind},
                    {"metadata", JsonObject{{"name", "grapnel"}}},
                    {"webhooks", std::move(webhooks)}};
}

}  // namespace

void add_admissions(runtime::Admission& admission, bool strict) {
  for (const OurKind* kind : our_kinds()) {
    if (kind->rules.defaulted) {
      admission.add(path_of("mutate", kind->type.kind), [kind](const Admitted& request) {
        return Result<Json>(kind->rules.defaulted(request.object));
      });
    }
    if (kind->rules.faults) {
      admission.add(path_of("validate", kind->type.kind), [kind, strict](const Admitted& request) {
        return validate(*kind, request, strict);
      });
    }
    for (const AdmissionHook& hook : kind->mutates) {
      admission.add(std::string(hook.path), hook.review);
    }
  }
}

Json validating_webhooks(const std::string& ns, const std::string& service) {
  JsonArray all;
  for (const OurKind* kind : our_kinds()) {
    if (!kind->rules.faults) continue;
    const kube::Kind& type = kind->type.kind;
    all.push_back(webhook({.name = name_of('v', type),
                           .path = path_of("validate", type),
                           .kind = type,
                           .operations = {"CREATE", "UPDATE"}},
                          ns, service));
  }
  return configuration("ValidatingWebhookConfiguration", std::move(all));
}

Json mutating_webhooks(const std::string& ns, const std::string& service) {
  JsonArray all;
  for (const OurKind* kind : our_kinds()) {
    const kube::Kind& type = kind->type.kind;
    if (kind->rules.defaulted) {
      all.push_back(webhook({.name = name_of('m', type),
                             .path = path_of("mutate", type),
                             .kind = type,
                             .operations = {"CREATE"}},
                            ns, service));
    }
    for (const AdmissionHook& hook : kind->mutates) all.push_back(webhook(hook, ns, service));
  }
  return configuration("MutatingWebhookConfiguration", std::move(all));
}

}  // namespace grapnel::controllers
