#include "local/kubelet/names.h"

#include <gmock/gmock.h>

#include "local/kubelet/handlers.h"
#include "local/kubelet/pod_test.h"
#include "local/kubelet/probes.h"
#include "local/node/dns_message.h"
#include "local/node/network.h"

namespace grapnel::local::kubelet {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::shared_ptr<const api::Service> service(std::string_view spec,
                                            std::string_view name = "group") {
  const Json object = JsonObject{{"metadata", JsonObject{{"name", name}, {"namespace", "ns"}}},
                                 {"spec", json(spec)}};
  auto decoded = api::decode_service(object);
  EXPECT_TRUE(decoded);
  return std::make_shared<const api::Service>(*decoded);
}

PlacedPod pod(std::string_view address, bool ready, std::string_view spec = "{}",
              std::string_view phase = "Running",
              std::string_view metadata = R"({"labels":{"app":"x"}})") {
  const auto status =
      fmt::format(R"({{"phase":"{}","conditions":[{{"type":"Ready","status":"{}"}}]}})", phase,
                  ready ? "True" : "False");
  return {.pod = std::make_shared<const Pod>(pod_of(spec, status, metadata)),
          .address = std::string(address)};
}

using Services = std::vector<std::shared_ptr<const api::Service>>;
dns::Table names_of(const Services& services, const std::vector<PlacedPod>& pods) {
  return kubelet::names_of(services, pods, {});
}

std::vector<std::string> addresses(const dns::Table& table, const std::string& name) {
  const auto query = dns::parse_query(dns::encode_query(1, name, dns::Type::kA));
  std::vector<std::string> out;
  if (!query) return out;
  for (const dns::Record& record : dns::answer(table, *query, 0).answers) {
    uint32_t number = 0;
    for (const char byte : record.data) number = number << 8 | static_cast<unsigned char>(byte);
    out.push_back(format_address(number));
  }
  return out;
}

TEST(Names, OfAHeadlessServiceAreItsReadyPods) {
  const auto table = names_of(
      {service(R"({"clusterIP":"None","selector":{"app":"x"}})")},
      {pod("10.0.0.1", true, R"({"hostname":"a","subdomain":"group"})"), pod("10.0.0.2", false),
       pod("10.0.0.3", true), pod("10.0.0.4", true, "{}", "Succeeded")});
  EXPECT_THAT(addresses(table, "group.ns.svc.cluster.local"),
              UnorderedElementsAre("10.0.0.1", "10.0.0.3"));
  EXPECT_THAT(addresses(table, "a.group.ns.svc.cluster.local"), ElementsAre("10.0.0.1"));
  EXPECT_THAT(addresses(table, "10-0-0-3.group.ns.svc.cluster.local"), ElementsAre("10.0.0.3"));
  EXPECT_THAT(addresses(table, "10-0-0-2.ns.pod.cluster.local"), ElementsAre("10.0.0.2"));
}

TEST(Names, OfPodsThatAreNotReadyAreGivenWhereAsked) {
  const auto table = names_of({service(R"({"clusterIP":"None","selector":{"app":"x"},
                                  "publishNotReadyAddresses":true})")},
                              {pod("10.0.0.2", false, R"({"hostname":"b","subdomain":"group"})")});
  EXPECT_THAT(addresses(table, "b.group.ns.svc.cluster.local"), ElementsAre("10.0.0.2"));
}

constexpr auto kHeadless = R"({"clusterIP":"None","selector":{"app":"x"}})";
constexpr auto kNotReadyToo =
    R"({"clusterIP":"None","selector":{"app":"x"},"publishNotReadyAddresses":true})";
constexpr auto kNamed = R"({"hostname":"a","subdomain":"group"})";
constexpr auto kOther = R"({"hostname":"b","subdomain":"group"})";
constexpr auto kDeleted = R"({"labels":{"app":"x"},"deletionTimestamp":"2026-01-01T00:00:00Z"})";
constexpr Instant kNow{seconds(1000)};

enum class When { kQuiet, kChanging };  // a pod of the group came or went 5 s ago
enum class Waits { kNobody, kForName, kForGroup, kForBoth };

struct Awaited {
  const char* what;
  const char* service;  // nullptr: there is none
  When when;
  std::vector<PlacedPod> pods;
  Waits waits;  // who asks for "a.group", for "group" itself
};

struct AwaitedNames : testing::TestWithParam<Awaited> {};

TEST_P(AwaitedNames, AreThoseThatSomebodyWillHave) {
  const Awaited& c = GetParam();
  ChangingGroups groups;
  const Duration ago = c.when == When::kChanging ? seconds(5) : seconds(11);
  groups.note(*pod("", false, kNamed).pod, kNow - ago);
  const Services services = c.service == nullptr ? Services() : Services{service(c.service)};
  const auto table = kubelet::names_of(services, c.pods, groups);
  EXPECT_EQ(table.is_awaited("a.group.ns.svc.cluster.local", kNow),
            c.waits == Waits::kForName || c.waits == Waits::kForBoth);
  EXPECT_EQ(table.is_awaited("group.ns.svc.cluster.local", kNow),
            c.waits == Waits::kForGroup || c.waits == Waits::kForBoth);
  EXPECT_FALSE(table.is_awaited("a.group.other.svc.cluster.local", kNow));
  EXPECT_FALSE(table.is_awaited("a.b.group.ns.svc.cluster.local", kNow));
}

using enum When;
using enum Waits;
INSTANTIATE_TEST_SUITE_P(
    All, AwaitedNames,
    testing::Values(
        Awaited{"has no address yet",
                kNotReadyToo,
                kQuiet,
                {pod("", false, kNamed, "Pending")},
                kForBoth},
        Awaited{"nobody has looked at it yet",
                kNotReadyToo,
                kQuiet,
                {pod("", false, kNamed, "")},
                kForBoth},
        Awaited{"has its address",
                kNotReadyToo,
                kQuiet,
                {pod("10.0.0.1", false, kNamed, "Pending")},
                kNobody},
        Awaited{"has its address and is not ready yet",
                kHeadless,
                kQuiet,
                {pod("10.0.0.1", false, kNamed, "Pending")},
                kForBoth},
        Awaited{
            "runs and is not ready", kHeadless, kQuiet, {pod("10.0.0.1", false, kNamed)}, kNobody},
        Awaited{"runs and is not ready while others come",
                kHeadless,
                kChanging,
                {pod("10.0.0.1", false, kNamed)},
                kNobody},
        Awaited{"is another", kNotReadyToo, kQuiet, {pod("", false, kOther, "Pending")}, kForGroup},
        Awaited{"is of another group",
                kNotReadyToo,
                kQuiet,
                {pod("", false, R"({"hostname":"a","subdomain":"g"})", "Pending")},
                kForGroup},
        Awaited{"is not selected",
                kNotReadyToo,
                kQuiet,
                {pod("", false, kNamed, "Pending", "{}")},
                kNobody},
        Awaited{"has died before it had one",
                kNotReadyToo,
                kQuiet,
                {pod("", false, kNamed, "Failed")},
                kNobody},
        Awaited{"has ended while others come",
                kNotReadyToo,
                kChanging,
                {pod("10.0.0.1", false, kNamed, "Succeeded")},
                kNobody},
        Awaited{"its successor has no address yet",
                kNotReadyToo,
                kQuiet,
                {pod("10.0.0.1", false, kNamed, "Failed"), pod("", false, kNamed, "Pending")},
                kForBoth},
        Awaited{"is being deleted",
                kNotReadyToo,
                kQuiet,
                {pod("", false, kNamed, "Pending", kDeleted)},
                kNobody},
        Awaited{"is being deleted and may come again",
                kNotReadyToo,
                kChanging,
                {pod("", false, kNamed, "Pending", kDeleted)},
                kForName},
        Awaited{"is not made yet", kNotReadyToo, kChanging, {}, kForName},
        Awaited{"neither it nor its service is made yet", nullptr, kChanging, {}, kForName},
        Awaited{"below a service with an address",
                R"({"clusterIP":"10.96.0.7","selector":{"app":"x"}})",
                kChanging,
                {},
                kNobody},
        Awaited{"nobody", kNotReadyToo, kQuiet, {}, kNobody}),
    [](const auto& info) {
      std::string name = info.param.what;
      std::ranges::replace(name, ' ', '_');
      return name;
    });

TEST(ChangingGroups, AreThoseWhosePodsOrServiceCameOrWentAMomentAgo) {
  ChangingGroups groups;
  groups.note(*service(kHeadless, "a"), kNow);
  groups.note(*service(R"({"clusterIP":"10.96.0.7"})", "with-address"), kNow);
  groups.note(*pod("", false).pod, kNow);
  EXPECT_THAT(groups.all(),
              ElementsAre(testing::Pair("a.ns.svc.cluster.local", kNow + seconds(10))));
  groups.note(*pod("", false, kNamed).pod, kNow + seconds(10));
  EXPECT_THAT(groups.all(),
              ElementsAre(testing::Pair("group.ns.svc.cluster.local", kNow + seconds(20))))
      << "what is over is forgotten";
}

TEST(MayMove, ByWhatNamesAndRoutesAreMadeOf) {
  const auto one = pod_of("{}", R"({"phase":"Pending"})");
  EXPECT_FALSE(may_move(one, one));
  EXPECT_FALSE(may_move(one, pod_of("{}", R"({"phase":"Pending","startTime":"x"})")));
  for (const char* status :
       {R"({"phase":"Running"})", R"({"phase":"Pending","podIP":"10.0.0.1"})",
        R"({"phase":"Pending","conditions":[{"type":"Ready","status":"True"}]})"}) {
    EXPECT_TRUE(may_move(one, pod_of("{}", status))) << status;
  }
  EXPECT_TRUE(may_move(one, pod_of("{}", R"({"phase":"Pending"})", kDeleted)));
}

TEST(Names, OfAServiceIsItsAddress) {
  const auto table = names_of({service(R"({"clusterIP":"10.96.0.7","selector":{"app":"x"}})")}, {});
  EXPECT_THAT(addresses(table, "group.ns.svc.cluster.local"), ElementsAre("10.96.0.7"));
}

TEST(Endpoints, AreThoseSelected) {
  const auto x = pod("10.0.0.1", true);
  EXPECT_EQ(endpoints_of(*service(R"({"selector":{"app":"x"}})"), {x}).size(), 1U);
  EXPECT_EQ(endpoints_of(*service(R"({"selector":{"app":"y"}})"), {x}).size(), 0U);
  EXPECT_EQ(endpoints_of(*service("{}"), {x}).size(), 0U);
}

TEST(TargetPort, IsANumberOrAName) {
  const Pod with_ports =
      pod_of(R"({"containers":[{"name":"m","ports":[{"name":"web","containerPort":8080}]}]})");
  EXPECT_EQ(target_port({.port = 80, .target_port = ""}, with_ports), 80);
  EXPECT_EQ(target_port({.port = 80, .target_port = "9000"}, with_ports), 9000);
  EXPECT_EQ(target_port({.port = 80, .target_port = "web"}, with_ports), 8080);
  EXPECT_EQ(target_port({.port = 80, .target_port = "none"}, with_ports), 80);
}

TEST(Routes, LeadToReadyPods) {
  const auto routes = routes_of(
      {service(R"({"clusterIP":"10.96.0.7","selector":{"app":"x"},
                   "ports":[{"port":80,"targetPort":8080},{"port":443,"targetPort":"web"},
                            {"port":80,"protocol":"UDP"},{"port":80,"protocol":"SCTP"}]})"),
       service(R"({"clusterIP":"None","selector":{"app":"x"},"ports":[{"port":80}]})", "headless")},
      {pod("10.0.0.1", true,
           R"({"containers":[{"name":"m","ports":[{"name":"web","containerPort":8443}]}]})"),
       pod("10.0.0.2", false)},
      0);
  EXPECT_THAT(routes, ElementsAre(Route{.address = "10.96.0.7",
                                        .port = 80,
                                        .targets = {{.address = "10.0.0.1", .port = 8080}}},
                                  Route{.address = "10.96.0.7",
                                        .port = 443,
                                        .targets = {{.address = "10.0.0.1", .port = 8443}}},
                                  Route{.address = "10.96.0.7",
                                        .port = 80,
                                        .is_udp = true,
                                        .targets = {{.address = "10.0.0.1", .port = 80}}}));
}

TEST(ServiceVariables, TellOfServicesOfTheNamespace) {
  const auto web =
      service(R"({"clusterIP":"10.96.0.7","ports":[{"name":"http","port":80}]})", "my-web");
  const auto headless = service(R"({"clusterIP":"None","ports":[{"port":80}]})");
  api::Service web_by_udp = *web;
  const auto variables = service_variables({web, headless}, pod_of("{}"));
  EXPECT_THAT(variables, testing::IsSupersetOf({std::pair<std::string, std::string>(
                                                    "MY_WEB_SERVICE_HOST", "10.96.0.7"),
                                                {"MY_WEB_SERVICE_PORT", "80"},
                                                {"MY_WEB_SERVICE_PORT_HTTP", "80"},
                                                {"MY_WEB_PORT", "tcp://10.96.0.7:80"},
                                                {"MY_WEB_PORT_80_TCP_ADDR", "10.96.0.7"}}));
  EXPECT_EQ(variables.size(), 8U);
  EXPECT_TRUE(service_variables({web}, pod_of(R"({"enableServiceLinks":false})")).empty());
  web_by_udp.ports[0].protocol = Interned("UDP");
  EXPECT_THAT(service_variables({std::make_shared<const api::Service>(web_by_udp)}, pod_of("{}")),
              testing::IsSupersetOf(
                  {std::pair<std::string, std::string>("MY_WEB_PORT", "udp://10.96.0.7:80"),
                   {"MY_WEB_PORT_80_UDP_PROTO", "udp"}}));
}

TEST(Probe, HasKubernetesDefaults) {
  const Json spec = json(
      R"({"name":"m","readinessProbe":{"tcpSocket":{"port":80}},
          "livenessProbe":{"periodSeconds":5,"timeoutSeconds":7,"failureThreshold":9,
                           "initialDelaySeconds":3,"terminationGracePeriodSeconds":4}})");
  const Container container{.spec = &spec};
  const auto readiness = probe_of(container, ProbeKind::kReadiness);
  ASSERT_TRUE(readiness);
  EXPECT_EQ(readiness->period, seconds(10));
  EXPECT_EQ(readiness->timeout, seconds(1));
  EXPECT_EQ(readiness->failure_threshold, 3);
  const auto liveness = probe_of(container, ProbeKind::kLiveness);
  ASSERT_TRUE(liveness);
  EXPECT_EQ(liveness->period, seconds(5));
  EXPECT_EQ(liveness->initial_delay, seconds(3));
  EXPECT_EQ(liveness->grace, seconds(4));
  EXPECT_FALSE(probe_of(container, ProbeKind::kStartup));
}

TEST(ProbeCounter, WaitsForTheThreshold) {
  const Probe probe{.success_threshold = 2, .failure_threshold = 3};
  ProbeCounter counter;
  EXPECT_EQ(counter.add(probe, true), std::nullopt);
  EXPECT_EQ(counter.add(probe, true), true);
  EXPECT_EQ(counter.add(probe, false), std::nullopt);
  EXPECT_EQ(counter.add(probe, false), std::nullopt);
  EXPECT_EQ(counter.add(probe, true), std::nullopt);
  EXPECT_EQ(counter.add(probe, false), std::nullopt);
  EXPECT_EQ(counter.add(probe, false), std::nullopt);
  EXPECT_EQ(counter.add(probe, false), false);
}

TEST(HttpProbe, AsksAndReads) {
  const std::string request = http_request(
      json(
          R"({"path":"healthz","httpHeaders":[{"name":"Host","value":"h"},{"name":"X","value":"1"}]})"),
      "10.0.0.1", 80);
  EXPECT_TRUE(request.starts_with("GET /healthz HTTP/1.1\r\nHost: h\r\n")) << request;
  EXPECT_NE(request.find("X: 1\r\n"), std::string::npos);
  EXPECT_EQ(http_status("HTTP/1.1 204 No Content\r\n"), 204);
  EXPECT_EQ(http_status("SSH-2.0-x\r\n"), 0);
  EXPECT_EQ(http_status("HTTP/1.1"), 0);
}

TEST(HttpProbe, FindsNamedPorts) {
  const Json spec = json(R"({"ports":[{"name":"web","containerPort":8080}]})");
  const Json number = 90;
  const Json digits = "91";
  const Json name = "web";
  const Json unknown = "none";
  EXPECT_EQ(port_of(spec, &number), 90);
  EXPECT_EQ(port_of(spec, &digits), 91);
  EXPECT_EQ(port_of(spec, &name), 8080);
  EXPECT_EQ(port_of(spec, &unknown), 0);
}

}  // namespace
}  // namespace grapnel::local::kubelet
