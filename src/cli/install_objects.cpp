#include "cli/install_objects.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "controllers/admission.h"
#include "controllers/controllers.h"
#include "runtime/webhook_certificate.h"

namespace grapnel::cli {
namespace {

namespace kinds = kube::kinds;
using controllers::Permission;

constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr kube::Kind kClusterRole{kRbac, "v1", "ClusterRole", "clusterroles", false};
constexpr kube::Kind kClusterRoleBinding{kRbac, "v1", "ClusterRoleBinding", "clusterrolebindings",
                                         false};
constexpr kube::Kind kRole{kRbac, "v1", "Role", "roles"};
constexpr kube::Kind kRoleBinding{kRbac, "v1", "RoleBinding", "rolebindings"};

constexpr std::string_view kFlowControl = "flowcontrol.apiserver.k8s.io";
constexpr kube::Kind kPriorityLevel{kFlowControl, "v1", "PriorityLevelConfiguration",
                                    "prioritylevelconfigurations", false};
constexpr kube::Kind kFlowSchema{kFlowControl, "v1", "FlowSchema", "flowschemas", false};

constexpr std::string_view kName = "grapnel";
constexpr std::string_view kService = "grapnel-webhook";
constexpr int kWebhookPort = 9443;

// ---- what the operator does ---------------------------------------------------------------------

// One rule for each resource, however many parts of us ask for it.
JsonArray rules_of(const std::vector<Permission>& permissions) {
  std::map<std::pair<std::string, std::string>, std::set<std::string_view>> verbs;
  for (const Permission& permission : permissions) {
    std::string resource(permission.kind.plural);
    if (!permission.subresource.empty()) resource += fmt::format("/{}", permission.subresource);
    verbs[{std::string(permission.kind.group), resource}].insert(permission.verbs.begin(),
                                                                 permission.verbs.end());
  }
  JsonArray rules;
  for (const auto& [what, allowed] : verbs) {
    JsonArray list;
    for (const std::string_view verb : allowed) list.push_back(Json(verb));
    rules.push_back(JsonObject{{"apiGroups", JsonArray{what.first}},
                               {"resources", JsonArray{what.second}},
                               {"verbs", std::move(list)}});
  }
  return rules;
}

JsonObject rule_for_named(const kube::Kind& kind, std::string_view name, JsonArray verbs) {
  return {{"apiGroups", JsonArray{kind.group}},
          {"resources", JsonArray{kind.plural}},
          {"resourceNames", JsonArray{name}},
          {"verbs", std::move(verbs)}};
}

JsonArray cluster_rules(bool webhooks) {
  auto permissions = controllers::permissions();
  permissions.push_back({kinds::kEvent, "", {"create", "patch"}});
  JsonArray rules = rules_of(permissions);
  if (webhooks) {
    for (const auto& kind : {runtime::kMutatingWebhook, runtime::kValidatingWebhook}) {
      rules.push_back(rule_for_named(kind, kName, {"get", "patch"}));
    }
  }
  return rules;
}

// In its own namespace: the Lease, and the Secret with the webhooks' certificate. What does not
// exist yet has no name to be allowed by.
JsonArray own_rules(bool webhooks) {
  std::vector<Permission> creates{{kinds::kLease, "", {"create"}}};
  if (webhooks) creates.push_back({kinds::kSecret, "", {"create"}});
  JsonArray rules = rules_of(creates);
  rules.push_back(rule_for_named(kinds::kLease, kName, {"get", "patch"}));
  if (webhooks) {
    rules.push_back(rule_for_named(kinds::kSecret, runtime::WebhookCertificateOptions().secret,
                                   {"get", "patch"}));
  }
  return rules;
}

// ---- objects ------------------------------------------------------------------------------------

JsonObject labels() {
  return {{"app.kubernetes.io/name", kName}};
}

// An object with its kind and name, and the members given.
InstallObject object(const kube::Kind& kind, std::string_view name, const std::string& ns,
                     JsonObject members) {
  JsonObject meta{{"name", name}, {"labels", labels()}};
  if (!ns.empty()) meta["namespace"] = ns;
  JsonObject whole{
      {"apiVersion", kind.api_version()}, {"kind", kind.kind}, {"metadata", std::move(meta)}};
  for (auto& [key, value] : members) whole[key] = std::move(value);
  return {kind, std::move(whole)};
}

JsonObject binding(const kube::Kind& role, const std::string& ns) {
  return {{"roleRef", JsonObject{{"apiGroup", role.group}, {"kind", role.kind}, {"name", kName}}},
          {"subjects",
           JsonArray{JsonObject{{"kind", "ServiceAccount"}, {"name", kName}, {"namespace", ns}}}}};
}

// A share of the API server of our own. We would have to share one with every other service
// account: how soon a thousand Jobs are made would depend on what all of those ask for.
InstallObject priority_level(int shares) {
  // One namespace may have as many requests waiting as we ever have under way.
  const JsonObject queuing{{"queues", 32}, {"handSize", 4}, {"queueLengthLimit", 96}};
  const JsonObject limited{{"nominalConcurrencyShares", shares},
                           {"lendablePercent", 25},  // while we have no use for them
                           {"limitResponse", JsonObject{{"type", "Queue"}, {"queuing", queuing}}}};
  return object(kPriorityLevel, kName, "",
                {{"spec", JsonObject{{"type", "Limited"}, {"limited", limited}}}});
}

// All that our account asks, fairly by namespace: a large experiment of one team holds up neither
// those of the others nor our Lease.
InstallObject flow_schema(const std::string& ns) {
  const JsonObject account{{"kind", "ServiceAccount"},
                           {"serviceAccount", JsonObject{{"name", kName}, {"namespace", ns}}}};
  const JsonArray all{"*"};
  const JsonObject resources{{"verbs", all},
                             {"apiGroups", all},
                             {"resources", all},
                             {"namespaces", all},
                             {"clusterScope", true}};
  const JsonObject rule{{"subjects", JsonArray{account}}, {"resourceRules", JsonArray{resources}}};
  return object(kFlowSchema, kName, "",
                {{"spec", JsonObject{{"matchingPrecedence", 1000},
                                     {"priorityLevelConfiguration", JsonObject{{"name", kName}}},
                                     {"distinguisherMethod", JsonObject{{"type", "ByNamespace"}}},
                                     {"rules", JsonArray{rule}}}}});
}

JsonObject probe(std::string_view path) {
  return {{"httpGet", JsonObject{{"path", path}, {"port", 8081}}}};
}

JsonObject container(const InstallOptions& options) {
  JsonArray arguments{"operator", fmt::format("--leader-elect-namespace={}", options.ns)};
  if (options.strict) arguments.emplace_back("--strict-compatibility");
  JsonArray ports{JsonObject{{"name", "metrics"}, {"containerPort", 8080}}};
  if (options.webhooks) {
    arguments.push_back(Json(fmt::format("--webhook-addr=0.0.0.0:{}", kWebhookPort)));
    ports.push_back(JsonObject{{"name", "webhook"}, {"containerPort", kWebhookPort}});
  }
  return {
      {"name", kName},
      {"image", options.image},
      {"args", std::move(arguments)},
      {"ports", std::move(ports)},
      {"livenessProbe", probe("/healthz")},
      {"readinessProbe", probe("/readyz")},
      {"resources", JsonObject{{"requests", JsonObject{{"cpu", "50m"}, {"memory", "32Mi"}}},
                               {"limits", JsonObject{{"memory", "512Mi"}}}}},
      {"securityContext", JsonObject{{"allowPrivilegeEscalation", false},
                                     {"readOnlyRootFilesystem", true},
                                     {"capabilities", JsonObject{{"drop", JsonArray{"ALL"}}}}}}};
}

InstallObject deployment(const InstallOptions& options) {
  JsonObject pod{
      {"serviceAccountName", kName},
      {"securityContext", JsonObject{{"runAsNonRoot", true},
                                     {"runAsUser", 65532},
                                     {"seccompProfile", JsonObject{{"type", "RuntimeDefault"}}}}},
      {"containers", JsonArray{container(options)}}};
  return object(
      kinds::kDeployment, kName, options.ns,
      {{"spec", JsonObject{{"replicas", 1},
                           {"selector", JsonObject{{"matchLabels", labels()}}},
                           {"template", JsonObject{{"metadata", JsonObject{{"labels", labels()}}},
                                                   {"spec", std::move(pod)}}}}}});
}

InstallObject webhook_service(const std::string& ns) {
  const JsonObject port{{"port", 443}, {"targetPort", kWebhookPort}};
  return object(kinds::kService, kService, ns,
                {{"spec", JsonObject{{"selector", labels()}, {"ports", JsonArray{port}}}}});
}

}  // namespace

std::vector<InstallObject> install_objects(const InstallOptions& options) {
  const std::string& ns = options.ns;
  std::vector<InstallObject> all;
  all.push_back(object(kinds::kNamespace, ns, "", {}));
  for (Json& crd : controllers::crds())
    all.push_back({kinds::kCustomResourceDefinition, std::move(crd)});
  all.push_back(object(kinds::kServiceAccount, kName, ns, {}));
  all.push_back(object(kClusterRole, kName, "", {{"rules", cluster_rules(options.webhooks)}}));
  all.push_back(object(kClusterRoleBinding, kName, "", binding(kClusterRole, ns)));
  all.push_back(object(kRole, kName, ns, {{"rules", own_rules(options.webhooks)}}));
  all.push_back(object(kRoleBinding, kName, ns, binding(kRole, ns)));
  if (options.concurrency_shares > 0) {
    for (auto& item : {priority_level(options.concurrency_shares), flow_schema(ns)}) {
      all.push_back(item);
      all.back().left_out_by = "--concurrency-shares 0";
    }
  }
  if (options.webhooks) all.push_back(webhook_service(ns));
  all.push_back(deployment(options));
  if (options.webhooks) {
    all.push_back(
        {runtime::kMutatingWebhook, controllers::mutating_webhooks(ns, std::string(kService))});
    all.push_back(
        {runtime::kValidatingWebhook, controllers::validating_webhooks(ns, std::string(kService))});
  }
  return all;
}

}  // namespace grapnel::cli
