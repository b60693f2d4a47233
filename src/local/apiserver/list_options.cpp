#include "local/apiserver/list_options.h"

#include <fmt/format.h>

#include <charconv>

#include "base/strings.h"

namespace grapnel::local {
namespace {

Failure bad_token() {
  return fail(Reason::kBadRequest, "continue key is not valid: encoded start key is not valid");
}

struct Token {
  uint64_t version = 0;
  std::string after;
};

Result<Token> parse_token(std::string_view text) {
  // Kubernetes' tokens are URL-safe base64 without padding.
  std::string standard(text);
  for (char& c : standard) {
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  while (standard.size() % 4 != 0) standard.push_back('=');
  const auto decoded = base64_decode(standard);
  if (!decoded) return bad_token();
  const auto json = parse_json(*decoded);
  if (!json || string_or(find(*json, "v")) != "meta.k8s.io/v1") return bad_token();
  Token token;
  token.version = static_cast<uint64_t>(int_or(find(*json, "rv")));
  token.after = string_or(find(*json, "start"));
  if (token.after.empty()) return bad_token();
  return token;
}

ApiError invalid_options(std::string_view field, const std::string& message,
                         std::string_view reason) {
  return invalid(
      "meta.k8s.io", "ListOptions", "",
      {Cause{.field = std::string(field), .message = message, .reason = std::string(reason)}});
}

}  // namespace

Answer<uint64_t> parse_version(std::string_view text) {
  if (text.empty()) return 0;
  uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Refusal(invalid("", "", "",
                           {Cause{.field = "resourceVersion",
                                  .message = fmt::format("Invalid value: {}: strconv.ParseUint: "
                                                         "parsing {}: invalid syntax",
                                                         quoted(text), quoted(text)),
                                  .reason = "FieldValueInvalid"}}));
  }
  return version;
}

std::string continue_token(uint64_t version, std::string_view last_key, std::string_view) {
  const JsonObject token{
      {"v", "meta.k8s.io/v1"}, {"rv", static_cast<int64_t>(version)}, {"start", last_key}};
  std::string text = base64_encode(to_text(token));
  while (!text.empty() && text.back() == '=') text.pop_back();
  for (char& c : text) {
    if (c == '+') c = '-';
    if (c == '/') c = '_';
  }
  return text;
}

Answer<ListOptions> ListOptions::parse(const Call& call, uint64_t newest) {
  ListOptions options;
  const std::string_view limit = call.query("limit");
  if (!limit.empty()) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), number);
    if (error != std::errc() || end != limit.data() + limit.size()) {
      return Refusal(
          bad_request(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", quoted(limit))));
    }
    if (number > 0) options.limit = static_cast<size_t>(number);
  }
  const std::string_view asked = call.query("resourceVersion");
  const std::string_view match = call.query("resourceVersionMatch");
  const std::string_view token = call.query("continue");
  if (call.target.has("sendInitialEvents")) {
    return Refusal(invalid_options("sendInitialEvents",
                                   "Forbidden: sendInitialEvents is forbidden for list",
                                   "FieldValueForbidden"));
  }
  if (!match.empty()) {
    if (asked.empty()) {
      return Refusal(invalid_options(
          "resourceVersionMatch",
          "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
          "FieldValueForbidden"));
    }
    if (!token.empty()) {
      return Refusal(
          invalid_options("resourceVersionMatch",
                          "Forbidden: resourceVersionMatch is forbidden when continue is provided",
                          "FieldValueForbidden"));
    }
    if (match != "Exact" && match != "NotOlderThan") {
      return Refusal(invalid_options("resourceVersionMatch",
                                     fmt::format("Unsupported value: {}: supported values: "
                                                 "\"Exact\", \"NotOlderThan\", \"\"",
                                                 quoted(match)),
                                     "FieldValueNotSupported"));
    }
    if (match == "Exact" && asked == "0") {
      return Refusal(invalid_options(
          "resourceVersionMatch",
          "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
          "FieldValueForbidden"));
    }
  }
  const auto version = parse_version(asked);
  if (!version) return Refusal(version.error());
  if (!token.empty()) {
    if (!asked.empty() && asked != "0") {
      return Refusal(bad_request("specifying resource version is not allowed when using continue"));
    }
    const auto parsed = parse_token(token);
    if (!parsed) return Refusal(bad_request(parsed.error().message));
    options.after = parsed->after;
    options.exact_version = parsed->version;
    return options;
  }
  if (*version > newest) return Refusal(version_too_large(*version, newest));
  // As Kubernetes reads it: with a limit, a version alone means exactly that one.
  if (*version > 0 && (match == "Exact" || (match.empty() && options.limit > 0))) {
    options.exact_version = *version;
  }
  return options;
}

}  // namespace grapnel::local
