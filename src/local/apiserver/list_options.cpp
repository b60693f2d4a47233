#include "local/apiserver/list_options.h"

#include <fmt/format.h>

#include <charconv>

#include "base/strings.h"

namespace grapnel::local {
namespace {

Failure bad_token(std::string_view why) {
  return fail(Reason::kBadRequest, "invalid continue token: continue key is not valid: {}", why);
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
  if (!decoded) return bad_token("it is not base64");
  const auto json = parse_json(*decoded);
  if (!json) return bad_token(json.error().message);
  if (const std::string_view form = string_or(find(*json, "v")); form != "meta.k8s.io/v1") {
    return bad_token(fmt::format("server does not recognize this encoded version {}", form));
  }
  Token token;
  token.version = static_cast<uint64_t>(int_or(find(*json, "rv")));
  token.after = string_or(find(*json, "start"));
  if (token.after.empty()) return bad_token("encoded start key is not valid");
  return token;
}

Answer<int64_t> parse_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Refusal(
        bad_request(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", in_quotes(text))));
  }
  return number;
}

// How resourceVersionMatch goes with the rest.
void check_match(const Call& call, FieldErrors& errors) {
  constexpr const char* kMatch = "resourceVersionMatch";
  const std::string_view match = call.query(kMatch);
  const std::string_view version = call.query("resourceVersion");
  if (!match.empty()) {
    if (version.empty()) {
      errors.forbidden(kMatch,
                       "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (!call.query("continue").empty()) {
      errors.forbidden(kMatch, "resourceVersionMatch is forbidden when continue is provided");
    }
    if (match != "Exact" && match != "NotOlderThan") {
      errors.not_supported(kMatch, match, {"Exact", "NotOlderThan", ""});
    }
    if (match == "Exact" && version == "0") {
      errors.forbidden(kMatch,
                       "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
  }
  if (call.target.has("sendInitialEvents")) {
    errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
  }
}

}  // namespace

Answer<uint64_t> parse_version(std::string_view text) {
  if (text.empty()) return 0;
  uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Refusal(
        ApiError{.code = 500,
                 .message = fmt::format("resourceVersion: Invalid value: {}: strconv.ParseUint: "
                                        "parsing {}: invalid syntax",
                                        in_quotes(text), in_quotes(text))});
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

bool parse_flag(std::string_view text) {
  return text != "0" && to_lower(text) != "false";
}

Answer<ListOptions> ListOptions::parse(const Call& call, uint64_t newest) {
  ListOptions options;
  if (const std::string_view limit = call.query("limit"); !limit.empty()) {
    const auto number = parse_number(limit);
    if (!number) return Refusal(number.error());
    if (*number > 0) options.limit = static_cast<size_t>(*number);
  }
  if (const std::string_view timeout = call.query("timeoutSeconds"); !timeout.empty()) {
    if (const auto number = parse_number(timeout); !number) return Refusal(number.error());
  }
  FieldErrors errors;
  check_match(call, errors);
  if (!errors.empty()) return Refusal(invalid("meta.k8s.io", "ListOptions", "", errors.take()));
  const std::string_view asked = call.query("resourceVersion");
  const auto version = parse_version(asked);
  if (!version) return Refusal(bad_request("invalid resource version: " + version.error().message));
  if (const std::string_view text = call.query("continue"); !text.empty()) {
    if (*version > 0) {
      return Refusal(bad_request("specifying resource version is not allowed when using continue"));
    }
    const auto token = parse_token(text);
    if (!token) return Refusal(bad_request(token.error().message));
    if (token->version > newest) return Refusal(version_too_large(token->version, newest));
    options.after = token->after;
    options.exact_version = token->version;
    return options;
  }
  if (*version > newest) return Refusal(version_too_large(*version, newest));
  // As Kubernetes reads it: with a limit, a version alone means exactly that one.
  const std::string_view match = call.query("resourceVersionMatch");
  if (*version > 0 && (match == "Exact" || (match.empty() && options.limit > 0))) {
    options.exact_version = *version;
  }
  return options;
}

}  // namespace grapnel::local
