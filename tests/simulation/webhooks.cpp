#include "tests/simulation/webhooks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "document/patch.h"
#include "tests/simulation/model.h"

namespace grapnel::simulation {
namespace {

bool names(const Json& rule, std::string_view what, std::string_view value) {
  const Json* list = find(rule, what);
  return list != nullptr && std::ranges::any_of(list->get_array(), [&](const Json& one) {
           return string_or(&one) == value || string_or(&one) == "*";
         });
}

bool selects(const Json& webhook, const Json& object) {
  const Json* expressions = at(webhook, "objectSelector", "matchExpressions");
  return expressions == nullptr ||
         std::ranges::all_of(expressions->get_array(), [&](const Json& one) {
           return at(object, "metadata", "labels", string_or(find(one, "key"))) != nullptr;
         });
}

bool asks_for(const Json& webhook, const kube::Kind& kind, const Json& object,
              std::string_view operation) {
  const Json* rules = find(webhook, "rules");
  return selects(webhook, object) && std::ranges::any_of(rules->get_array(), [&](const Json& rule) {
           return names(rule, "apiGroups", kind.group) && names(rule, "resources", kind.plural) &&
                  names(rule, "operations", operation);
         });
}

http::Response refusal_of(std::string_view webhook, const Json* status) {
  const auto message = status == nullptr ? "" : string_or(find(*status, "message"));
  const auto code = status == nullptr ? 403 : int_or(find(*status, "code"), 403);
  const auto reason = status == nullptr ? "Forbidden" : string_or(find(*status, "reason"));
  return failure(static_cast<int>(code), reason,
                 fmt::format("admission webhook \"{}\" denied the request: {}", webhook, message));
}

}  // namespace

std::optional<http::Response> Webhooks::ask(const Json& webhook, const kube::Kind& kind,
                                            Json& object, const Json* before) const {
  JsonObject request{{"uid", "review"},
                     {"kind", JsonObject{{"group", kind.group}, {"kind", kind.kind}}},
                     {"name", string_or(at(object, "metadata", "name"))},
                     {"operation", before == nullptr ? "CREATE" : "UPDATE"},
                     {"object", object}};
  if (before != nullptr) request["oldObject"] = *before;
  const auto path = string_or(at(webhook, "clientConfig", "service", "path"));
  const auto answer = configurations_.admission->respond(path, request);
  const auto name = string_or(find(webhook, "name"));
  if (!answer) return failure(500, "InternalError", fmt::format("no webhook at {}", path));
  if (!bool_or(find(*answer, "allowed"))) return refusal_of(name, find(*answer, "status"));
  if (const Json* patch = find(*answer, "patch")) {
    const auto decoded = base64_decode(string_or(patch));
    const auto operations = parse_json(decoded.value_or(""));
    if (!operations || !apply_json_patch(object, *operations)) {
      return failure(500, "InternalError", fmt::format("{} sent no patch", name));
    }
  }
  return std::nullopt;
}

Webhooks::Outcome Webhooks::review(const kube::Kind& kind, Json object, const Json* before,
                                   bool down) const {
  const std::string_view operation = before == nullptr ? "CREATE" : "UPDATE";
  for (const Json* configuration : {&configurations_.mutating, &configurations_.validating}) {
    const Json* list = configuration->is_object() ? find(*configuration, "webhooks") : nullptr;
    if (list == nullptr) continue;
    for (const Json& webhook : list->get_array()) {
      if (!asks_for(webhook, kind, object, operation)) continue;
      if (down) {
        return {failure(500, "InternalError",
                        fmt::format("failed calling webhook \"{}\": connection refused",
                                    string_or(find(webhook, "name")))),
                {}};
      }
      if (auto refused = ask(webhook, kind, object, before)) return {std::move(refused), {}};
    }
  }
  return {std::nullopt, std::move(object)};
}

}  // namespace grapnel::simulation
