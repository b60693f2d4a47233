#include "kube/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grapnel::kube {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Error of(int code, std::string body, http::Headers headers = {}) {
  return error_of_answer({.status = code, .headers = std::move(headers), .body = std::move(body)},
                         "GET /x");
}

TEST(Status, ReasonsAndCodes) {
  struct Case {
    int code;
    std::string reason;
    Reason expected;
  };
  for (const Case& c : std::vector<Case>{
           {404, "NotFound", Reason::kNotFound},
           {409, "AlreadyExists", Reason::kAlreadyExists},
           {409, "Conflict", Reason::kConflict},
           {410, "Expired", Reason::kExpired},
           {410, "Gone", Reason::kGone},
           {422, "Invalid", Reason::kInvalid},
           {500, "ServerTimeout", Reason::kServerTimeout},
           {504, "Timeout", Reason::kTimeout},
           // No reason, or one we do not know: the code decides.
           {400, "", Reason::kBadRequest},
           {401, "", Reason::kUnauthorized},
           {403, "", Reason::kForbidden},
           {405, "", Reason::kMethodNotAllowed},
           {406, "", Reason::kNotAcceptable},
           {409, "", Reason::kConflict},
           {410, "", Reason::kGone},
           {413, "", Reason::kRequestEntityTooLarge},
           {415, "", Reason::kUnsupportedMediaType},
           {422, "", Reason::kInvalid},
           {429, "", Reason::kTooManyRequests},
           {500, "StorageReadError", Reason::kInternalError},
           {502, "", Reason::kServiceUnavailable},
           {503, "", Reason::kServiceUnavailable},
           {504, "", Reason::kTimeout},
           {418, "", Reason::kUnknown},
           // A name of ours from outside is no more than an unknown one.
           {500, "Cancelled", Reason::kInternalError},
       }) {
    JsonObject status{{"kind", "Status"}, {"reason", c.reason}, {"message", "no"}};
    const Error error = of(c.code, to_text(status));
    EXPECT_EQ(error.reason, c.expected) << c.code << " " << c.reason;
    EXPECT_EQ(error.code, c.code);
    EXPECT_EQ(error.message, "no");
    EXPECT_FALSE(error.ambiguous);
  }
}

TEST(Status, CausesAreKept) {
  const Error error = of(422, R"({"kind":"Status","reason":"Invalid","message":"Job is invalid",
    "details":{"causes":[
      {"reason":"FieldValueRequired","message":"Required value","field":"spec.template"},
      7, {"field": 3}]}})");
  ASSERT_EQ(error.causes.size(), 2U);
  EXPECT_EQ(error.causes[0], (Cause{.field = "spec.template",
                                    .message = "Required value",
                                    .reason = "FieldValueRequired"}));
  EXPECT_EQ(error.causes[1], Cause{});
}

TEST(Status, RetryAfter) {
  const std::string status = R"({"kind":"Status","details":{"retryAfterSeconds":3}})";
  EXPECT_EQ(of(429, status).retry_after, Duration(seconds(3)));
  EXPECT_EQ(of(429, status, {{"Retry-After", " 7 "}}).retry_after, Duration(seconds(7)));
  EXPECT_EQ(of(429, "", {{"retry-after", "1"}}).retry_after, Duration(seconds(1)));
  EXPECT_EQ(of(429, status, {{"Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"}}).retry_after,
            Duration(seconds(3)));
  EXPECT_EQ(of(503, "", {{"Retry-After", "99999999999"}}).retry_after, Duration(hours(1)));
  EXPECT_EQ(of(503, "", {{"Retry-After", "-5"}}).retry_after, std::nullopt);
  EXPECT_EQ(of(503, R"({"kind":"Status","details":{"retryAfterSeconds":"9"}})").retry_after,
            std::nullopt);
}

TEST(Status, AnswersOfProxiesAreShownShort) {
  const Error error = of(502, "<html>\r\n<head><title>502 Bad Gateway</title>\n\n</html>\n");
  EXPECT_EQ(error.reason, Reason::kServiceUnavailable);
  EXPECT_TRUE(error.is_transient());
  EXPECT_EQ(error.message,
            "GET /x: the server answered 502, not as Kubernetes does: <html> <head><title>502 Bad "
            "Gateway</title> </html>");

  const Error long_one = of(500, std::string(100000, 'a'));
  EXPECT_LT(long_one.message.size(), 300U);
  std::string accents = "a";  // two bytes each: the cut must not fall between them
  for (int i = 0; i < 1000; ++i) accents += "é";
  EXPECT_TRUE(parse_json("\"" + of(500, accents).message + "\"").has_value());

  EXPECT_EQ(of(503, "").message, "GET /x: the server answered 503");
  EXPECT_THAT(of(302, "", {{"Location", "https://login"}}).message,
              HasSubstr("(to https://login)"));
  // JSON, but no Status: a Pod behind a proxy path, or another kind of server.
  EXPECT_THAT(of(404, R"({"detail":"Not Found"})").message, HasSubstr("not as Kubernetes does"));
  EXPECT_EQ(of(404, "[]").reason, Reason::kNotFound);
}

TEST(Status, OfAWatchEventTakesItsOwnCode) {
  const auto status = parse_json(
      R"({"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"})");
  const Error error = error_of_status(0, *status);
  EXPECT_EQ(error.code, 410);
  EXPECT_EQ(error.reason, Reason::kExpired);
  EXPECT_EQ(error_of_status(0, *parse_json(R"({"code":99999999999})")).code, 999);
  EXPECT_EQ(error_of_status(0, Json()).reason, Reason::kUnknown);
  EXPECT_EQ(error_of_status(410, Json(3)).message, "the server answered 410 Gone");
}

}  // namespace
}  // namespace grapnel::kube
