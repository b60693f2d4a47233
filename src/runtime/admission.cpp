#include "runtime/admission.h"

#include "base/strings.h"
#include "document/patch.h"

namespace grapnel::runtime {
namespace {

http::Response plain(int status, std::string text) {
  return {.status = status, .headers = {{"Content-Type", "text/plain"}}, .body = std::move(text)};
}

Json member(const Json& value, std::string_view name) {
  const Json* found = find(value, name);
  return found == nullptr ? Json() : *found;
}

// As the API server tells of faults it finds itself: kubectl prints them the same way.
JsonObject status_of(const Error& error, const Json& request) {
  JsonArray causes;
  for (const Cause& cause : error.causes) {
    causes.push_back(
        JsonObject{{"reason", cause.reason}, {"message", cause.message}, {"field", cause.field}});
  }
  const int code = error.is(Reason::kInvalid) ? 422 : 403;
  return {{"status", "Failure"},
          {"message", error.message},
          {"reason", to_string(error.reason)},
          {"code", code},
          {"details", JsonObject{{"name", string_or(at(request, "name"))},
                                 {"group", string_or(at(request, "kind", "group"))},
                                 {"kind", string_or(at(request, "kind", "kind"))},
                                 {"causes", std::move(causes)}}}};
}

JsonObject judge(const Review& review, const Json& request) {
  const Admitted admitted{.operation = std::string(string_or(at(request, "operation"))),
                          .object = member(request, "object"),
                          .before = member(request, "oldObject")};
  JsonObject response{{"uid", string_or(at(request, "uid"))}};
  const auto stored = review(admitted);
  response["allowed"] = stored.has_value();
  if (!stored) {
    response["status"] = status_of(stored.error(), request);
  } else if (auto patch = json_patch_between(admitted.object, *stored); !patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = base64_encode(to_text(patch));
  }
  return response;
}

}  // namespace

std::optional<Json> Admission::respond(std::string_view path, const Json& request) const {
  const auto found = reviews_.find(path);
  if (found == reviews_.end()) return std::nullopt;
  return judge(found->second, request);
}

http::Response Admission::answer(const http::Request& request) const {
  if (request.method != "POST") return plain(405, "only POST\n");
  const auto asked = parse_json(request.body);
  if (!asked) return plain(400, asked.error().message + "\n");
  const Json* inner = at(*asked, "request");
  if (inner == nullptr || !inner->is_object()) return plain(400, "no AdmissionReview\n");
  auto response = respond(http::parse_target(request.target).path, *inner);
  if (!response) return plain(404, "no webhook here\n");
  const JsonObject review{{"apiVersion", "admission.k8s.io/v1"},
                          {"kind", "AdmissionReview"},
                          {"response", std::move(*response)}};
  return {
      .status = 200, .headers = {{"Content-Type", "application/json"}}, .body = to_text(review)};
}

http::Handler Admission::handler() const {
  return [this](http::Exchange& exchange) -> Task<> {
    return [](const Admission& self, http::Exchange& e) -> Task<> {
      co_await e.respond(self.answer(e.request()));
    }(*this, exchange);
  };
}

}  // namespace grapnel::runtime
