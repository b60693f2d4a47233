#include "local/apiserver/admission/webhooks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "document/elements.h"
#include "document/patch.h"
#include "local/apiserver/admission/caller.h"
#include "local/apiserver/api.h"
#include "local/apiserver/metadata.h"

namespace grapnel::local {
namespace {

constexpr std::string_view kScale = "scale";

bool selects(const Selector& selector, const Json& object) {
  if (selector.empty()) return true;
  const Json* labels = at(object, "metadata", "labels");
  return selector.matches(labels == nullptr ? nullptr : labels->if_object());
}

// Labels of the object's namespace; a namespace counts as being in itself.
bool in_selected_namespace(const Api& api, const Call& call, const Webhook& webhook,
                           const Review& review) {
  if (webhook.namespaces.empty()) return true;
  if (call.type->kind == "Namespace" && call.type->group.empty()) {
    return selects(webhook.namespaces, review.object.is_null() ? review.old : review.object);
  }
  if (!call.type->namespaced) return true;
  const ObjectPtr stored = api.store.get("namespaces", review.ns);
  const auto ns = parse_json(stored ? stored->json : "{}");
  return ns && selects(webhook.namespaces, *ns);
}

bool has_rule(const Webhook& webhook, const ResourceType& type, std::string_view operation,
              std::string_view subresource) {
  return webhook.has_rule_for(operation, type.group, type.version, type.plural, subresource,
                              type.namespaced);
}

bool is_asked(const Api& api, const Call& call, const Webhook& webhook, const Review& review) {
  return has_rule(webhook, *call.type, review.operation, review.subresource) &&
         in_selected_namespace(api, call, webhook, review) &&
         (selects(webhook.objects, review.object) || selects(webhook.objects, review.old));
}

std::string options_kind(const Review& review) {
  if (review.operation == "DELETE") return "DeleteOptions";
  return review.operation == "CREATE" ? "CreateOptions" : "UpdateOptions";
}

Json review_json(const Call& call, const Review& review, const std::string& uid) {
  const ResourceType& type = *call.type;
  const JsonObject kind{{"group", type.group}, {"version", type.version}, {"kind", type.kind}};
  const JsonObject resource{
      {"group", type.group}, {"version", type.version}, {"resource", type.plural}};
  JsonObject request{{"uid", uid}, {"kind", kind}, {"resource", resource}};
  request["requestKind"] = kind;
  request["requestResource"] = resource;
  if (!review.subresource.empty()) {
    request["subResource"] = review.subresource;
    request["requestSubResource"] = review.subresource;
  }
  if (!review.name.empty()) request["name"] = review.name;
  if (type.namespaced) request["namespace"] = review.ns;
  request["operation"] = review.operation;
  request["userInfo"] =
      JsonObject{{"username", "grapnel"},
                 {"groups", JsonArray{Json("system:masters"), Json("system:authenticated")}}};
  request["object"] = review.object;
  request["oldObject"] = review.old;
  request["dryRun"] = call.dry_run;
  request["options"] = JsonObject{{"kind", options_kind(review)}, {"apiVersion", "meta.k8s.io/v1"}};
  return JsonObject{{"kind", "AdmissionReview"},
                    {"apiVersion", "admission.k8s.io/v1"},
                    {"request", std::move(request)}};
}

ApiError denied(const Webhook& webhook, const Json& response) {
  const Json* status = find(response, "status");
  const std::string_view message = status == nullptr ? "" : string_or(find(*status, "message"));
  const std::string_view reason = status == nullptr ? "" : string_or(find(*status, "reason"));
  const int64_t code = status == nullptr ? 0 : int_or(find(*status, "code"));
  std::string why = fmt::format("admission webhook {} denied the request", in_quotes(webhook.name));
  if (!message.empty() || !reason.empty()) {
    why += fmt::format(": {}", message.empty() ? reason : message);
  } else {
    why += " without explanation";
  }
  ApiError error{.code = code >= 400 && code < 600 ? static_cast<int>(code) : 400,
                 .reason = std::string(reason),
                 .message = std::move(why)};
  const Json* details = status == nullptr ? nullptr : find(*status, "details");
  if (details == nullptr || !details->is_object()) return error;
  error.has_details = true;
  error.name = string_or(find(*details, "name"));
  error.group = string_or(find(*details, "group"));
  error.kind = string_or(find(*details, "kind"));
  error.uid = string_or(find(*details, "uid"));
  for (const Json& cause : elements(find(*details, "causes"))) {
    error.causes.push_back({.field = std::string(string_or(find(cause, "field"))),
                            .message = std::string(string_or(find(cause, "message"))),
                            .reason = std::string(string_or(find(cause, "reason")))});
  }
  return error;
}

void add_warnings(Call& call, const Json& response) {
  const Json* warnings = find(response, "warnings");
  if (warnings == nullptr || !warnings->is_array()) return;
  for (const Json& one : warnings->as_array()) call.warnings.emplace_back(string_or(&one));
}

// Whether the response changed the object.
Result<bool> apply_patch(const Json& response, Json& object) {
  const std::string_view encoded = string_or(find(response, "patch"));
  if (encoded.empty()) return false;
  if (string_or(find(response, "patchType")) != "JSONPatch") {
    return fail(Reason::kDecode, "unsupported patch type {}",
                in_quotes(string_or(find(response, "patchType"))));
  }
  const auto decoded = base64_decode(encoded);
  if (!decoded) return fail(Reason::kDecode, "the patch is not base64");
  const auto patch = parse_json(*decoded);
  if (!patch) return fail(patch.error());
  Json next = object;
  if (auto done = apply_json_patch(next, *patch); !done) return fail(done.error());
  if (!next.is_object()) return fail(Reason::kDecode, "the patch leaves no object");
  const bool changed = !equal(next, object);
  object = std::move(next);
  return changed;
}

// Whether the object changed. A webhook that cannot be reached refuses, or is ignored.
Task<Answer<bool>> ask(WebhookCaller& caller, Api& api, Call& call, const Webhook& webhook,
                       Review& review) {
  auto response =
      co_await caller.call(api, webhook, review_json(call, review, new_uid(api.random)));
  Result<bool> changed = false;
  if (response) {
    add_warnings(call, *response);
    if (!bool_or(find(*response, "allowed"))) co_return Refusal(denied(webhook, *response));
    if (review.object.is_object()) changed = apply_patch(*response, review.object);
  }
  if (response && changed) co_return *changed;
  const Error& error = response ? changed.error() : response.error();
  const std::string why = fmt::format("failed calling webhook {}: failed to call webhook: {}",
                                      in_quotes(webhook.name), error.message);
  if (webhook.fails_closed) co_return Refusal(internal(why));
  log_warning("a webhook was passed over", {{"webhook", webhook.name}, {"error", error.message}});
  co_return false;
}

bool is_configuration(const Call& call) {
  return call.type->group == "admissionregistration.k8s.io";
}

}  // namespace

Webhooks::Webhooks(Executor executor)
    : caller_(std::make_unique<WebhookCaller>(std::move(executor))) {}
Webhooks::~Webhooks() = default;

void Webhooks::set(std::string_view resource, const std::string& name, const Json* configuration) {
  Configurations& all = resource.starts_with("mutating") ? mutating_ : validating_;
  all.erase(name);
  if (configuration == nullptr) return;
  for (const Json& one : elements(find(*configuration, "webhooks"))) {
    all[name].push_back(Webhook::from_json(one));
  }
}

void Webhooks::set_residents(const ResidentWebhooks& residents) {
  const std::string first;  // no configuration can have this name
  set("mutatingwebhookconfigurations", first, &residents.mutating);
  set("validatingwebhookconfigurations", first, &residents.validating);
  for (Configurations* all : {&mutating_, &validating_}) {
    for (Webhook& webhook : (*all)[first]) webhook.resident = true;
  }
  caller_->set_residents(residents.admission);
}

template <class Predicate>
bool Webhooks::any(Predicate predicate) const {
  for (const Configurations* all : {&mutating_, &validating_}) {
    for (const auto& [name, webhooks] : *all) {
      if (std::any_of(webhooks.begin(), webhooks.end(), predicate)) return true;
    }
  }
  return false;
}

bool Webhooks::may_concern(const Call& call, std::string_view operation,
                           std::string_view subresource) const {
  return !is_configuration(call) && subresource != kScale && any([&](const Webhook& webhook) {
    return has_rule(webhook, *call.type, operation, subresource);
  });
}

bool Webhooks::concern(const Api& api, const Call& call, const Review& review) const {
  return !is_configuration(call) &&
         any([&](const Webhook& webhook) { return is_asked(api, call, webhook, review); });
}

Task<Answer<Json>> Webhooks::mutate(Api& api, Call& call, Review review) {
  // Copies, since configurations may change while a webhook works.
  std::vector<Webhook> webhooks;
  for (const auto& [name, list] : mutating_)
    webhooks.insert(webhooks.end(), list.begin(), list.end());
  size_t last_change = 0;
  for (size_t i = 0; i < webhooks.size(); ++i) {
    if (!is_asked(api, call, webhooks[i], review)) continue;
    auto changed = co_await ask(*caller_, api, call, webhooks[i], review);
    if (!changed) co_return Refusal(changed.error());
    if (*changed) last_change = i;
  }
  for (size_t i = 0; i < last_change; ++i) {
    if (!webhooks[i].reinvoked || !is_asked(api, call, webhooks[i], review)) continue;
    auto changed = co_await ask(*caller_, api, call, webhooks[i], review);
    if (!changed) co_return Refusal(changed.error());
  }
  co_return std::move(review.object);
}

Task<Answer<>> Webhooks::validate(Api& api, Call& call, Review review) {
  std::vector<Webhook> webhooks;
  for (const auto& [name, list] : validating_) {
    webhooks.insert(webhooks.end(), list.begin(), list.end());
  }
  for (const Webhook& webhook : webhooks) {
    if (!is_asked(api, call, webhook, review)) continue;
    Review copy = review;  // a validating webhook changes nothing
    auto asked = co_await ask(*caller_, api, call, webhook, copy);
    if (!asked) co_return Refusal(asked.error());
  }
  co_return Answer<>();
}

void warn_of_webhooks(const Json& configuration, std::vector<std::string>& warnings) {
  const auto& webhooks = elements(find(configuration, "webhooks"));
  for (size_t i = 0; i < webhooks.size(); ++i) {
    const auto warn = [&](std::string_view what) {
      warnings.push_back(
          fmt::format("webhooks[{}]: this server asks no webhook about {}", i, what));
    };
    for (const WebhookRule& rule : Webhook::from_json(webhooks[i]).rules) {
      if (rule.covers_connecting()) warn("CONNECT");
      for (const std::string& resource : rule.resources) {
        if (resource.ends_with("/scale") || resource.ends_with("/*")) {
          warn(resource.substr(0, resource.find('/')) + "/scale");
        }
      }
    }
  }
}

void validate_webhooks(const Json& configuration, FieldErrors& errors) {
  const Json* list = find(configuration, "webhooks");
  if (list == nullptr || !list->is_array()) return;
  for (size_t i = 0; i < list->as_array().size(); ++i) {
    const Json& webhook = list->as_array()[i];
    const std::string path = fmt::format("webhooks[{}]", i);
    const Json* conditions = find(webhook, "matchConditions");
    if (conditions != nullptr && conditions->is_array() && !conditions->as_array().empty()) {
      errors.forbidden(path + ".matchConditions", "this server has no expressions (CEL)");
    }
    const std::string_view url = string_or(at(webhook, "clientConfig", "url"));
    const bool service = at(webhook, "clientConfig", "service") != nullptr;
    if (url.empty() != service) {
      errors.required(path + ".clientConfig", "exactly one of url or service is required");
    } else if (!url.empty() && !url.starts_with("https://")) {
      errors.invalid(path + ".clientConfig.url", url, "'https' is the only allowed URL scheme");
    }
    const Json* effects = find(webhook, "sideEffects");
    if (string_or(effects) != "None" && string_or(effects) != "NoneOnDryRun") {
      errors.not_supported(path + ".sideEffects", string_or(effects), {"None", "NoneOnDryRun"});
    }
    const int64_t timeout = int_or(find(webhook, "timeoutSeconds"), 10);
    if (timeout < 1 || timeout > 30) {
      errors.invalid_value(path + ".timeoutSeconds", Json(timeout),
                           "the timeout value must be between 1 and 30 seconds");
    }
  }
}

}  // namespace grapnel::local
