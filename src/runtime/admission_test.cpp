#include "runtime/admission.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace grapnel::runtime {
namespace {

// Refuses what is called "bad", and gives every other object a label.
Result<Json> review(const Admitted& request) {
  if (string_or(at(request.object, "metadata", "name")) == "bad") {
    return fail(Error{.reason = Reason::kInvalid,
                      .message = "metadata.name: bad",
                      .causes = {{"metadata.name", "bad", "FieldValueInvalid", "", ""}}});
  }
  Json object = request.object;
  if (object.is_object()) ensure_object(object.as_object(), "metadata")["seen"] = request.operation;
  return object;
}

http::Response ask(std::string_view name, std::string path = "/here?timeout=10s") {
  Admission admission;
  admission.add("/here", review);
  const JsonObject request{{"uid", "u1"},
                           {"operation", "CREATE"},
                           {"name", name},
                           {"kind", JsonObject{{"group", "g"}, {"kind", "K"}}},
                           {"object", JsonObject{{"metadata", JsonObject{{"name", name}}}}}};
  return admission.answer({.method = "POST",
                           .target = std::move(path),
                           .body = to_text(JsonObject{{"request", request}})});
}

TEST(Admission, AnswersWithThePatchToWhatIsStored) {
  const Json answer = *parse_json(ask("good").body);
  EXPECT_EQ(string_or(at(answer, "kind")), "AdmissionReview");
  const Json& response = *at(answer, "response");
  EXPECT_EQ(string_or(at(response, "uid")), "u1");
  EXPECT_TRUE(bool_or(at(response, "allowed")));
  EXPECT_EQ(string_or(at(response, "patchType")), "JSONPatch");
  EXPECT_EQ(*base64_decode(string_or(at(response, "patch"))),
            R"([{"op":"add","path":"/metadata/seen","value":"CREATE"}])");
}

TEST(Admission, RefusesWithTheFieldsAtFault) {
  const Json answer = *parse_json(ask("bad").body);
  const Json& response = *at(answer, "response");
  EXPECT_FALSE(bool_or(at(response, "allowed"), true));
  EXPECT_EQ(int_or(at(response, "status", "code")), 422);
  EXPECT_EQ(string_or(at(response, "status", "reason")), "Invalid");
  const Json& cause = at(response, "status", "details", "causes")->as_array().at(0);
  EXPECT_EQ(string_or(at(cause, "field")), "metadata.name");
}

TEST(Admission, SaysWhatIsWrongWithARequest) {
  EXPECT_EQ(ask("good", "/elsewhere").status, 404);
  Admission admission;
  admission.add("/here", review);
  EXPECT_EQ(admission.answer({.method = "GET", .target = "/here"}).status, 405);
  for (const char* body : {"", "{", "[]", "{}", R"({"request":1})"}) {
    EXPECT_EQ(admission.answer({.method = "POST", .target = "/here", .body = body}).status, 400)
        << body;
  }
}

}  // namespace
}  // namespace grapnel::runtime
