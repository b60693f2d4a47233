#include "local/apiserver/status.h"

#include <fmt/format.h>

#include <algorithm>

namespace grapnel::local {
namespace {

ApiError about(int code, std::string_view reason, const GroupResource& what, std::string_view name,
               std::string message) {
  return ApiError{.code = code,
                  .reason = std::string(reason),
                  .message = std::move(message),
                  .name = std::string(name),
                  .group = what.group,
                  .kind = what.resource,
                  .has_details = true};
}

ApiError plain(int code, std::string_view reason, std::string message) {
  return ApiError{.code = code, .reason = std::string(reason), .message = std::move(message)};
}

// A value as Go's field errors show it.
std::string shown(const Json& value) {
  if (value.is_string()) return in_quotes(string_or(&value));
  return to_text(value);
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
  return out;
}

Json to_status(const ApiError& error) {
  JsonObject status{{"kind", "Status"},
                    {"apiVersion", "v1"},
                    {"metadata", JsonObject()},
                    {"status", "Failure"},
                    {"message", error.message}};
  if (!error.reason.empty()) status["reason"] = error.reason;
  JsonObject details;
  if (!error.name.empty()) details["name"] = error.name;
  if (!error.group.empty()) details["group"] = error.group;
  if (!error.kind.empty()) details["kind"] = error.kind;
  if (!error.uid.empty()) details["uid"] = error.uid;
  if (!error.causes.empty()) {
    JsonArray causes;
    for (const Cause& cause : error.causes) {
      JsonObject one;
      if (!cause.reason.empty()) one["reason"] = cause.reason;
      if (!cause.message.empty()) one["message"] = cause.message;
      if (!cause.field.empty()) one["field"] = cause.field;
      causes.emplace_back(std::move(one));
    }
    details["causes"] = std::move(causes);
  }
  if (error.retry_after > 0) details["retryAfterSeconds"] = error.retry_after;
  if (!details.empty() || error.has_details) status["details"] = std::move(details);
  status["code"] = error.code;
  return status;
}

Json success_status(const GroupResource& what, std::string_view name, std::string_view uid) {
  JsonObject details{{"name", name}};
  if (!what.group.empty()) details["group"] = what.group;
  details["kind"] = what.resource;
  if (!uid.empty()) details["uid"] = uid;
  return JsonObject{{"kind", "Status"},
                    {"apiVersion", "v1"},
                    {"metadata", JsonObject()},
                    {"status", "Success"},
                    {"details", std::move(details)}};
}

ApiError not_found(const GroupResource& what, std::string_view name) {
  return about(404, "NotFound", what, name,
               fmt::format("{} {} not found", what.text(), in_quotes(name)));
}

ApiError already_exists(const GroupResource& what, std::string_view name) {
  return about(409, "AlreadyExists", what, name,
               fmt::format("{} {} already exists", what.text(), in_quotes(name)));
}

ApiError conflict(const GroupResource& what, std::string_view name, std::string_view why) {
  return about(
      409, "Conflict", what, name,
      fmt::format("Operation cannot be fulfilled on {} {}: {}", what.text(), in_quotes(name), why));
}

ApiError modified(const GroupResource& what, std::string_view name) {
  return conflict(what, name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

ApiError forbidden(const GroupResource& what, std::string_view name, std::string_view why) {
  return about(403, "Forbidden", what, name,
               name.empty()
                   ? fmt::format("{} is forbidden: {}", what.text(), why)
                   : fmt::format("{} {} is forbidden: {}", what.text(), in_quotes(name), why));
}

ApiError bad_request(std::string message) {
  return plain(400, "BadRequest", std::move(message));
}

ApiError unauthorized() {
  return plain(401, "Unauthorized", "Unauthorized");
}

ApiError path_not_found() {
  ApiError error = plain(404, "NotFound", "the server could not find the requested resource");
  error.has_details = true;
  return error;
}

ApiError method_not_allowed() {
  ApiError error = plain(405, "MethodNotAllowed",
                         "the server does not allow this method on the requested resource");
  error.has_details = true;
  return error;
}

ApiError method_not_supported(const GroupResource& what, std::string_view action) {
  ApiError error = about(
      405, "MethodNotAllowed", what, "",
      fmt::format("{} is not supported on resources of kind {}", action, in_quotes(what.text())));
  return error;
}

ApiError invalid(std::string_view group, std::string_view kind, std::string_view name,
                 std::vector<Cause> causes) {
  const std::string qualified =
      group.empty() ? std::string(kind) : fmt::format("{}.{}", kind, group);
  // Go joins distinct messages only.
  std::vector<std::string> texts;
  for (const Cause& cause : causes) {
    std::string text = fmt::format("{}: {}", cause.field, cause.message);
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  }
  std::string message = fmt::format("{} {} is invalid", qualified, in_quotes(name));
  if (texts.size() == 1) message += ": " + texts.front();
  if (texts.size() > 1) message += fmt::format(": [{}]", fmt::join(texts, ", "));
  ApiError error = about(422, "Invalid", {std::string(group), std::string(kind)}, name, message);
  error.causes = std::move(causes);
  return error;
}

ApiError invalid_dry_run(std::string_view options, std::string_view given) {
  return invalid(
      "meta.k8s.io", options, "",
      {Cause{.field = "dryRun",
             .message = fmt::format("Unsupported value: []string{{{}}}: supported values: \"All\"",
                                    in_quotes(given)),
             .reason = "FieldValueNotSupported"}});
}

ApiError expired(std::string message) {
  return plain(410, "Expired", std::move(message));
}

ApiError unsupported_media_type(std::string_view accepted) {
  return plain(415, "UnsupportedMediaType",
               fmt::format("the body of the request was in an unknown format - accepted media "
                           "types include: {}",
                           accepted));
}

ApiError not_acceptable(std::string_view accepted) {
  return plain(406, "NotAcceptable",
               fmt::format("only the following media types are accepted: {}", accepted));
}

ApiError too_large(size_t limit) {
  return plain(413, "RequestEntityTooLarge",
               fmt::format("Request entity too large: limit is {}", limit));
}

ApiError internal(std::string_view what) {
  ApiError error = plain(500, "InternalError", fmt::format("Internal error occurred: {}", what));
  error.causes.push_back(Cause{.message = std::string(what)});
  return error;
}

ApiError not_implemented(std::string message) {
  return plain(501, "NotImplemented", std::move(message));
}

ApiError version_too_large(uint64_t asked, uint64_t current) {
  ApiError error =
      plain(504, "Timeout",
            fmt::format("Timeout: Too large resource version: {}, current: {}", asked, current));
  error.causes.push_back(
      Cause{.message = "Too large resource version", .reason = "ResourceVersionTooLarge"});
  error.retry_after = 1;
  return error;
}

void FieldErrors::add(std::string field, std::string_view reason, std::string message) {
  list_.push_back(Cause{
      .field = std::move(field), .message = std::move(message), .reason = std::string(reason)});
}

void FieldErrors::repeat() {
  const size_t count = list_.size();
  for (size_t i = 0; i < count; ++i) list_.push_back(Cause(list_[i]));
}

void FieldErrors::required(std::string field, std::string_view detail) {
  add(std::move(field), "FieldValueRequired",
      detail.empty() ? "Required value" : fmt::format("Required value: {}", detail));
}

void FieldErrors::invalid(std::string field, std::string_view value, std::string_view detail) {
  add(std::move(field), "FieldValueInvalid",
      fmt::format("Invalid value: {}: {}", in_quotes(value), detail));
}

void FieldErrors::invalid_value(std::string field, const Json& value, std::string_view detail) {
  add(std::move(field), "FieldValueInvalid",
      fmt::format("Invalid value: {}: {}", shown(value), detail));
}

void FieldErrors::type_invalid(std::string field, const Json& value, std::string_view detail) {
  add(std::move(field), "FieldValueTypeInvalid",
      fmt::format("Invalid value: {}: {}", shown(value), detail));
}

void FieldErrors::not_supported(std::string field, std::string_view value,
                                const std::vector<std::string_view>& allowed) {
  std::vector<std::string> texts;
  texts.reserve(allowed.size());
  for (const std::string_view one : allowed) texts.push_back(in_quotes(one));
  add(std::move(field), "FieldValueNotSupported",
      fmt::format("Unsupported value: {}: supported values: {}", in_quotes(value),
                  fmt::join(texts, ", ")));
}

void FieldErrors::duplicate(std::string field, const Json& value) {
  add(std::move(field), "FieldValueDuplicate", fmt::format("Duplicate value: {}", shown(value)));
}

void FieldErrors::forbidden(std::string field, std::string_view detail) {
  add(std::move(field), "FieldValueForbidden", fmt::format("Forbidden: {}", detail));
}

void FieldErrors::too_long(std::string field, size_t most) {
  add(std::move(field), "FieldValueTooLong",
      fmt::format("Too long: may not be more than {} bytes", most));
}

void FieldErrors::too_many(std::string field, size_t actual, size_t most) {
  add(std::move(field), "FieldValueTooMany",
      fmt::format("Too many: {}: must have at most {} items", actual, most));
}

}  // namespace grapnel::local
