#include "local/builtin/endpoints/plan.h"

#include <gtest/gtest.h>

#include <deque>

namespace grapnel::local {
namespace {

struct Pod {
  std::string address;
  bool ready = true;
  bool deleting = false;
  bool ended = false;
  int64_t web_port = 0;  // of the container port named "web"
};

struct Case {
  std::string name;
  std::string spec = R"({"selector":{"a":"b"},"ports":[{"port":80,"targetPort":8080}]})";
  std::vector<Pod> pods;
  std::string subsets;    // ready / not ready : ports
  std::string endpoints;  // of the slices
};

std::string list_of(const Json* addresses) {
  std::string text;
  if (addresses == nullptr) return text;
  for (const Json& one : addresses->as_array()) {
    text += fmt::format("{} ", string_or(find(one, "ip")));
  }
  return text;
}

std::string ports_of(const Json* ports) {
  std::string text;
  if (ports == nullptr) return text;
  for (const Json& one : ports->as_array()) {
    text += fmt::format("{}{} ", string_or(find(one, "name")), int_or(find(one, "port")));
  }
  return text;
}

class EndpointsPlan : public testing::TestWithParam<Case> {};

TEST_P(EndpointsPlan, Answers) {
  const Case& c = GetParam();
  Json object = *parse_json(R"({"metadata":{"name":"s","namespace":"ns","uid":"u"}})");
  object.as_object()["spec"] = *parse_json(c.spec);
  const auto service = decode_endpoints_service(object);
  ASSERT_TRUE(service);
  EndpointsObserved observed{.service = &*service};
  std::deque<EndpointsPod> pods;
  for (const auto& p : c.pods) {
    EndpointsPod& pod = pods.emplace_back();
    pod.meta.key = {Interned("ns"), p.address};
    if (p.deleting) pod.meta.deleted = Time{};
    pod.address = p.address;
    pod.ready = p.ready;
    pod.ended = p.ended;
    if (p.web_port != 0) pod.ports.push_back({"web", "TCP", p.web_port});
    observed.pods.push_back(&pod);
  }
  std::string subsets;
  std::string endpoints;
  for (const auto& stage : plan(observed).stages) {
    for (const auto& write : stage) {
      const auto& created = std::get<runtime::Create>(write);
      const Json body = created.object.make();
      if (created.kind->kind == "Endpoints") {
        const Json* list = find(body, "subsets");
        if (list == nullptr) continue;
        for (const Json& subset : list->as_array()) {
          subsets += fmt::format("{}/ {}: {}; ", list_of(find(subset, "addresses")),
                                 list_of(find(subset, "notReadyAddresses")),
                                 ports_of(find(subset, "ports")));
        }
        continue;
      }
      for (const Json& one : find(body, "endpoints")->as_array()) {
        endpoints +=
            fmt::format("{}{}{}{} ", string_or(&find(one, "addresses")->as_array()[0]),
                        bool_or(at(one, "conditions", "ready")) ? " ready" : "",
                        bool_or(at(one, "conditions", "serving")) ? " serving" : "",
                        bool_or(at(one, "conditions", "terminating")) ? " terminating" : "");
      }
      endpoints += fmt::format(": {}; ", ports_of(find(body, "ports")));
    }
  }
  EXPECT_EQ(subsets, c.subsets);
  EXPECT_EQ(endpoints, c.endpoints);
}

const std::string kPublish =
    R"({"selector":{"a":"b"},"publishNotReadyAddresses":true,"clusterIP":"None"})";
const std::string kNamed = R"({"selector":{"a":"b"},"ports":[{"port":80,"targetPort":"web"}]})";

INSTANTIATE_TEST_SUITE_P(
    Table, EndpointsPlan,
    testing::Values(Case{.name = "NoPods", .subsets = "", .endpoints = ": ; "},
                    Case{.name = "ReadyAndNot",
                         .pods = {{"10.0.0.1"}, {.address = "10.0.0.2", .ready = false}},
                         .subsets = "10.0.0.1 / 10.0.0.2 : 8080 ; ",
                         .endpoints = "10.0.0.1 ready serving 10.0.0.2 : 8080 ; "},
                    Case{.name = "LeavingAndEnded",
                         .pods = {{.address = "10.0.0.1", .deleting = true},
                                  {.address = "10.0.0.2", .ended = true},
                                  {.address = ""}},
                         .endpoints = "10.0.0.1 serving terminating : 8080 ; "},
                    Case{.name = "PublishesThoseThatAreNotReady",
                         .spec = kPublish,
                         .pods = {{.address = "10.0.0.1", .ready = false}},
                         .subsets = "10.0.0.1 / : ; ",
                         .endpoints = "10.0.0.1 ready : ; "},
                    Case{.name = "NamedPortsMayDiffer",
                         .spec = kNamed,
                         .pods = {{.address = "10.0.0.1", .web_port = 1},
                                  {.address = "10.0.0.2", .web_port = 2},
                                  {.address = "10.0.0.3", .web_port = 1}},
                         .subsets = "10.0.0.1 10.0.0.3 / : 1 ; 10.0.0.2 / : 2 ; ",
                         .endpoints = "10.0.0.1 ready serving 10.0.0.3 ready serving : 1 ; "
                                      "10.0.0.2 ready serving : 2 ; "},
                    Case{.name = "WithoutASelectorSomebodyElseDoesIt",
                         .spec = R"({"ports":[{"port":80}]})",
                         .pods = {{"10.0.0.1"}}}),
    [](const auto& info) { return info.param.name; });

TEST(EndpointsPlan, WritesOnlyChangesAndClearsUp) {
  EndpointsService service{.selector = {{"a", "b"}}, .ports = {{.port = 80, .target_port = 80}}};
  service.meta.key = {Interned("ns"), "s"};
  EndpointsPod pod{.address = "10.0.0.1", .ready = true};
  pod.meta.key = {Interned("ns"), "p"};
  EndpointsObserved observed{.service = &service, .pods = {&pod}};
  const auto first = plan(observed);
  ASSERT_EQ(first.stages.at(0).size(), 2U);
  const auto endpoints =
      decode_endpoints(std::get<runtime::Create>(first.stages[0][0]).object.make());
  const auto slice =
      decode_endpoint_slice(std::get<runtime::Create>(first.stages[0][1]).object.make());
  ASSERT_TRUE(endpoints && slice);
  observed.endpoints = &*endpoints;
  observed.slices = {&*slice};
  EXPECT_TRUE(plan(observed).empty());
  pod.ready = false;
  EXPECT_EQ(plan(observed).stages.at(0).size(), 2U);
  observed.service = nullptr;
  EXPECT_EQ(runtime::describe(plan(observed)), "delete Endpoints ns/s\n");
}

TEST(EndpointsPlan, ASliceHoldsAHundred) {
  EndpointsService service{.selector = {{"a", "b"}}, .ports = {{.port = 80, .target_port = 80}}};
  service.meta.key = {Interned("ns"), "s"};
  std::deque<EndpointsPod> pods;
  EndpointsObserved observed{.service = &service};
  for (int i = 0; i < 201; ++i) {
    pods.push_back({.address = fmt::format("10.0.1.{}", i), .ready = true});
    pods.back().meta.key = {Interned("ns"), std::to_string(i)};
    observed.pods.push_back(&pods.back());
  }
  EXPECT_EQ(plan(observed).stages.at(0).size(), 1U + 3U);
}

}  // namespace
}  // namespace grapnel::local
