// Bodies: decoding what clients send, encoding what they asked for.

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "document/yaml.h"
#include "kube/types/conform.h"
#include "kube/types/protobuf.h"
#include "local/apiserver/api.h"
#include "local/apiserver/crd.h"
#include "local/apiserver/duplicate_fields.h"
#include "local/apiserver/schema.h"
#include "local/apiserver/table.h"
#include "local/apiserver/write.h"

namespace grapnel::local {
namespace {

constexpr std::string_view kAcceptedMedia =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

std::string media_type(std::string_view header) {
  return to_lower(trim(header.substr(0, header.find(';'))));
}

}  // namespace

Answer<Json> decode_body(const Call& call) {
  const std::string& body = call.request->body;
  if (body.empty()) return Json(JsonObject());
  const std::string type = media_type(call.request->headers.get("content-type"));
  if (type.empty() || type == "application/json" || type == "text/plain" ||
      type.ends_with("+json")) {
    auto json = parse_json(body);
    if (!json) return Refusal(bad_request(json.error().message));
    return std::move(*json);
  }
  if (type == "application/yaml" || type == "text/yaml" || type.ends_with("+yaml")) {
    auto documents = parse_yaml(body);
    if (!documents) return Refusal(bad_request(documents.error().message));
    if (documents->empty()) return Json(JsonObject());
    return std::move(documents->front().value);
  }
  if (type == kube::kProtobuf && (!call.type || !call.type->custom)) {
    auto json = kube::decode_protobuf(body);
    if (!json) return Refusal(bad_request(json.error().message));
    return std::move(*json);
  }
  return Refusal(unsupported_media_type(kAcceptedMedia));
}

bool is_apply(const Call& call) {
  return call.info.verb == "patch" && media_type(call.request->headers.get("content-type"))
                                          .starts_with("application/apply-patch+");
}

std::string manager_name(const Call& call) {
  if (!call.field_manager.empty() || call.request == nullptr) return call.field_manager;
  const std::string_view agent = call.request->headers.get("user-agent");
  std::string name;
  for (const char c : agent.substr(0, agent.find('/'))) {
    if (static_cast<unsigned char>(c) < 0x20 || name.size() >= 128) break;
    name.push_back(c);
  }
  return name.empty() ? "unknown" : name;
}

namespace {

bool has_json_body(const Call& call) {
  const std::string type = media_type(call.request->headers.get("content-type"));
  return type.empty() || type == "application/json" || type.ends_with("+json");
}

}  // namespace

Answer<> check_fields(Call& call, Json& object) {
  const ResourceType& type = *call.type;
  std::vector<std::string> unknown;
  std::vector<std::string> repeated;
  std::string wrong;
  if (type.custom) {
    if (type.custom->schema.is_object()) unknown = prune(type.custom->schema, object);
    std::sort(unknown.begin(), unknown.end());
  } else if (const kube::TypeInfo* shape =
                 kube::type_of_kind(type.group, type.version, type.kind)) {
    auto found = kube::conform(*shape, object.as_object());
    if (found) {
      unknown = std::move(*found);
    } else {
      wrong = found.error().message;
    }
  }
  if (call.field_validation != "Ignore" && has_json_body(call)) {
    repeated = duplicate_fields(call.request->body);
  }
  if (wrong.empty() && !(unknown.empty() && repeated.empty())) {
    std::vector<std::string> complaints;
    for (const std::string& path : repeated) {
      complaints.push_back(fmt::format("duplicate field {}", in_quotes(path)));
    }
    for (const std::string& path : unknown) {
      complaints.push_back(fmt::format("unknown field {}", in_quotes(path)));
    }
    if (call.field_validation == "Strict" || is_apply(call)) {
      wrong = fmt::format("strict decoding error: {}", fmt::join(complaints, ", "));
    } else if (call.field_validation != "Ignore") {
      call.warnings.insert(call.warnings.end(), complaints.begin(), complaints.end());
    }
  }
  if (wrong.empty()) return {};
  if (is_apply(call)) return Refusal(ApiError{.code = 500, .message = wrong});
  if (call.info.verb == "patch") {
    return Refusal(invalid(
        "", "", "",
        {Cause{.field = "patch",
               .message = fmt::format("Invalid value: {}: {}", in_quotes(to_text(object)), wrong),
               .reason = "FieldValueInvalid"}}));
  }
  return Refusal(bad_request(fmt::format("{} in version {} cannot be handled as a {}: {}",
                                         type.kind, in_quotes(type.version), type.kind, wrong)));
}

Answer<Json> decode_object(Call& call) {
  if (call.request->body.empty()) {
    return Refusal(bad_request(
        fmt::format("the object provided is unrecognized (must be of type {}): couldn't get "
                    "version/kind; json parse error: unexpected end of JSON input (<empty>)",
                    call.type->kind)));
  }
  auto decoded = decode_body(call);
  if (!decoded) {
    if (decoded.error().code != 400 || is_apply(call)) return decoded;
    return Refusal(bad_request(
        fmt::format("the object provided is unrecognized (must be of type {}): couldn't get "
                    "version/kind; json parse error: {}",
                    call.type->kind, decoded.error().message)));
  }
  Json object = std::move(*decoded);
  if (!object.is_object()) {
    return Refusal(bad_request(fmt::format(
        "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json "
        "parse error: json: cannot unmarshal into Go value of type struct",
        call.type->kind)));
  }
  JsonObject& fields = object.as_object();
  const std::string version(string_or(fields.if_contains("apiVersion")));
  const std::string kind(string_or(fields.if_contains("kind")));
  if (is_apply(call) && (version != call.type->api_version() || kind != call.type->kind)) {
    const size_t slash = version.find('/');
    const std::string group_version = slash == std::string::npos ? "/" + version : version;
    return Refusal(
        bad_request(fmt::format("invalid object type: {}, Kind={}", group_version, kind)));
  }
  if (call.type->custom && (version.empty() || kind.empty())) {
    return Refusal(bad_request(fmt::format("Object '{}' is missing in '{}'",
                                           kind.empty() ? "Kind" : "apiVersion", to_text(object))));
  }
  if (!version.empty() && version != call.type->api_version()) {
    return Refusal(bad_request(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    version, call.type->api_version())));
  }
  if (!kind.empty() && kind != call.type->kind && call.type->custom) {
    FieldErrors errors;
    errors.invalid("kind", kind, fmt::format("must be {}", call.type->kind));
    return Refusal(invalid(call.type->group, call.type->kind,
                           string_or(at(object, "metadata", "name")), errors.take()));
  }
  if (!kind.empty() && kind != call.type->kind) {
    return Refusal(bad_request(
        fmt::format("{} in version {} cannot be handled as a {}: no kind "
                    "match for the resource {}",
                    kind, in_quotes(call.type->version), call.type->kind, call.type->plural)));
  }
  fields["apiVersion"] = call.type->api_version();
  fields["kind"] = call.type->kind;
  if (auto checked = check_fields(call, object); !checked) return Refusal(checked.error());
  return object;
}

std::string encode_json(const Api& api, const Call& call, const Json& object) {
  switch (call.accepted.form) {
    case Form::kTable:
      return to_text(table_of(*call.type, {object}, TableOptions::from(call, api.clock.now())));
    case Form::kPartial:
      return to_text(partial_of(object));
    case Form::kObject:
      break;
  }
  return to_text(object);
}

std::string encode_object(const Api& api, const Call& call, const Object& object) {
  if (call.accepted.form == Form::kObject && is_stored_version(*call.type)) return object.json;
  return encode_json(api, call, object_as(*call.type, object));
}

}  // namespace grapnel::local
