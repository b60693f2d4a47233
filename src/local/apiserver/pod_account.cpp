#include "local/apiserver/pod_account.h"

#include <fmt/format.h>

#include "local/apiserver/fields.h"
#include "local/apiserver/metadata.h"

namespace grapnel::local {

Answer<> set_service_account(const Api& api, std::string_view ns, JsonObject& pod) {
  constexpr std::string_view kDefault = "default";
  JsonObject& spec = ensure_object(pod, "spec");
  const std::string name(string_or(spec.if_contains("serviceAccountName"), kDefault));
  if (name == kDefault || name.empty()) {
    spec["serviceAccountName"] = kDefault;
    spec["serviceAccount"] = kDefault;
    return {};
  }
  if (api.store.get("serviceaccounts", key_of(ns, name))) return {};
  return Refusal(forbidden({"", "pods"}, string_or(at_in(pod, "metadata", "name")),
                           fmt::format("error looking up service account {}/{}: serviceaccount "
                                       "{} not found",
                                       ns, name, in_quotes(name))));
}

}  // namespace grapnel::local
