#include "local/apiserver/crd.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

// A member that is added to an object moves the others: nothing may be read where it was.
TEST(Definition, IsCompletedWithItsOwnNames) {
  for (int members = 0; members < 40; ++members) {
    Json definition = *parse_json(
        R"({"metadata":{"name":"things.example.com"},"spec":{"names":{"kind":"Thing","plural":"things"}}})");
    JsonObject& object = definition.as_object();
    for (int i = 0; i < members; ++i) {
      object["spec"].as_object()[fmt::format("member-{}", i)] = std::string(200, 'x');
    }
    complete_definition(object, Time{});
    EXPECT_EQ(to_text(*at(definition, "status", "acceptedNames")),
              to_text(*at(definition, "spec", "names")));
    EXPECT_EQ(string_or(at(definition, "status", "acceptedNames", "singular")), "thing");
    EXPECT_EQ(string_or(at(definition, "spec", "conversion", "strategy")), "None");
  }
}

}  // namespace
}  // namespace grapnel::local
