#include "local/kubelet/environment.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "local/kubelet/container_spec.h"
#include "local/kubelet/pod_test.h"
#include "local/node/sandbox.h"

namespace grapnel::local::kubelet {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

TEST(Expand, IsKubernetesOwn) {
  const auto value = [](std::string_view name) -> std::optional<std::string> {
    if (name == "A") return "1";
    if (name == "EMPTY") return "";
    return std::nullopt;
  };
  const std::vector<std::pair<std::string, std::string>> rows{
      {"plain", "plain"},
      {"$(A)", "1"},
      {"x$(A)y$(A)", "x1y1"},
      {"$(EMPTY)|", "|"},
      {"$(UNKNOWN)", "$(UNKNOWN)"},
      {"$$(A)", "$(A)"},
      {"$$$(A)", "$1"},
      {"$$$$(A)", "$$(A)"},
      {"$A", "$A"},
      {"$", "$"},
      {"$(A", "$(A"},
      {"$()", "$()"},
      {"100$$", "100$"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(expand(text, value), expected) << text;
}

const NodeFacts kNode{.name = "laptop",
                      .address = "10.244.0.1",
                      .work_directory = "/home/me/project",
                      .environment = {"PATH=/opt/bin:/bin", "HOME=/home/me"},
                      .cpu_millis = 8000,
                      .memory_bytes = 16LL << 30};

Sources sources() {
  Sources out;
  out.config_maps["settings"] =
      json(R"({"kind":"ConfigMap","data":{"a":"1","b":"2"},"binaryData":{"c":"Mw=="}})");
  out.secrets["password"] = json(R"({"kind":"Secret","data":{"word":"c2VzYW1l"}})");
  return out;
}

Result<ContainerToRun> run_of(std::string_view container, std::string_view rest = "") {
  const Pod pod = pod_of(fmt::format(R"({{"containers":[{}]{}}})", container, rest), "{}",
                         R"({"labels":{"app":"x","a/b":"c"},"annotations":{"note":"n"}})");
  const Sources known = sources();
  const std::vector<Volume> volumes;
  return container_to_run({.pod = &pod,
                           .container = main_containers(pod).at(0),
                           .attempt = 2,
                           .sources = &known,
                           .node = &kNode,
                           .volumes = &volumes,
                           .pod_address = "10.244.0.9",
                           .log_path = "/logs/2.log"});
}

std::vector<std::string> environment(std::string_view fields) {
  auto run = run_of(fmt::format(R"({{"name":"main","command":["x"],{}}})", fields));
  EXPECT_TRUE(run) << (run ? "" : run.error().message);
  return run ? run->spec.environment : std::vector<std::string>();
}

TEST(Environment, IsTheNodesUnderThePods) {
  EXPECT_THAT(environment(R"("env":[{"name":"HOME","value":"/root"}])"),
              IsSupersetOf({"PATH=/opt/bin:/bin", "HOME=/root", "HOSTNAME=p"}));
}

TEST(Environment, ExpandsWhatCameBefore) {
  EXPECT_THAT(environment(R"json("env":[{"name":"A","value":"1"},{"name":"B","value":"$(A)$(C)"},
                                    {"name":"C","value":"3"},{"name":"P","value":"$(PATH)"}])json"),
              IsSupersetOf({"B=1$(C)", "C=3", "P=$(PATH)"}));
}

TEST(Environment, TakesFromMapsAndSecrets) {
  EXPECT_THAT(environment(R"("envFrom":[{"prefix":"X_","configMapRef":{"name":"settings"}},
                                        {"secretRef":{"name":"none","optional":true}}],
      "env":[{"name":"X_a","value":"over"},
             {"name":"W","valueFrom":{"secretKeyRef":{"name":"password","key":"word"}}},
             {"name":"O","valueFrom":{"configMapKeyRef":{"name":"settings","key":"z","optional":true}}}])"),
              testing::AllOf(IsSupersetOf({"X_a=over", "X_b=2", "X_c=3", "W=sesame"}),
                             testing::Not(Contains(HasSubstr("O=")))));
}

TEST(Environment, TellsThePodOfItself) {
  const auto field = [](std::string_view path) {
    const auto all = environment(fmt::format(
        R"("env":[{{"name":"F","valueFrom":{{"fieldRef":{{"fieldPath":"{}"}}}}}}])", path));
    return all.back();
  };
  EXPECT_EQ(field("metadata.name"), "F=p");
  EXPECT_EQ(field("metadata.namespace"), "F=ns");
  EXPECT_EQ(field("metadata.uid"), "F=u");
  EXPECT_EQ(field("metadata.labels['a/b']"), "F=c");
  EXPECT_EQ(field("metadata.labels['missing']"), "F=");
  EXPECT_EQ(field("metadata.annotations['note']"), "F=n");
  EXPECT_EQ(field("spec.nodeName"), "F=laptop");
  EXPECT_EQ(field("spec.serviceAccountName"), "F=default");
  EXPECT_EQ(field("status.podIP"), "F=10.244.0.9");
  EXPECT_EQ(field("status.hostIP"), "F=10.244.0.1");
}

TEST(Environment, TellsOfResources) {
  const auto field = [](std::string_view resource, std::string_view divisor) {
    return environment(fmt::format(
                           R"("resources":{{"limits":{{"cpu":"1500m","memory":"1Gi"}},
                              "requests":{{"cpu":"250m"}}}},
                              "env":[{{"name":"R","valueFrom":{{"resourceFieldRef":
                                {{"resource":"{}","divisor":"{}"}}}}}}])",
                           resource, divisor))
        .back();
  };
  EXPECT_EQ(field("limits.cpu", "1"), "R=2");
  EXPECT_EQ(field("limits.cpu", "1m"), "R=1500");
  EXPECT_EQ(field("requests.cpu", "1"), "R=1");
  EXPECT_EQ(field("limits.memory", "1Mi"), "R=1024");
  EXPECT_EQ(field("limits.memory", "0"), "R=1073741824");
  EXPECT_EQ(environment(R"("env":[{"name":"R","valueFrom":{"resourceFieldRef":
                {"resource":"limits.cpu"}}}])")
                .back(),
            "R=8");
}

TEST(Environment, NamesWhatIsMissing) {
  const auto why = [](std::string_view from) {
    auto run = run_of(fmt::format(
        R"({{"name":"main","command":["x"],"env":[{{"name":"A","valueFrom":{}}}]}})", from));
    return run ? "no error" : run.error().message;
  };
  EXPECT_EQ(why(R"({"configMapKeyRef":{"name":"none","key":"a"}})"),
            "configmap \"none\" not found");
  EXPECT_EQ(why(R"({"secretKeyRef":{"name":"password","key":"x"}})"),
            "couldn't find key x in Secret ns/password");
  EXPECT_EQ(why(R"({"fieldRef":{"fieldPath":"spec.nonsense"}})"),
            "unsupported fieldPath: spec.nonsense");
}

TEST(Environment, InheritsWhatProgramsNeed) {
  EXPECT_THAT(inherited_environment({"PATH=/x", "LC_ALL=C", "AWS_SECRET_ACCESS_KEY=s", "DISPLAY=:0",
                                     "VIRTUAL_ENV=/v"}),
              ElementsAre("PATH=/x", "LC_ALL=C", "VIRTUAL_ENV=/v"));
  EXPECT_THAT(inherited_environment({}), ElementsAre(HasSubstr("PATH=/usr/local/sbin")));
}

TEST(ContainerToRun, SaysWhatAndWhere) {
  auto run = run_of(R"json({"name":"main","command":["python","$(SCRIPT)"],
      "args":["--x=$(NO)","$$(SCRIPT)"],"env":[{"name":"SCRIPT","value":"main.py"}],
      "resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"500m"}}})json");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_THAT(run->spec.arguments, ElementsAre("python", "main.py", "--x=$(NO)", "$(SCRIPT)"));
  EXPECT_EQ(run->spec.directory, "/home/me/project");
  EXPECT_EQ(run->spec.attempt, 2U);
  EXPECT_EQ(run->spec.limits.cpu_millis, 2000);
  EXPECT_EQ(run->spec.limits.cpu_request_millis, 500);
  EXPECT_EQ(run->spec.limits.memory_bytes, 1UL << 30);
  EXPECT_EQ(run->spec.log_path, "/logs/2.log");
}

TEST(ContainerToRun, NeedsACommand) {
  for (const char* container : {R"({"name":"main"})", R"({"name":"main","args":["x"]})"}) {
    auto run = run_of(container);
    ASSERT_FALSE(run);
    EXPECT_THAT(run.error().message, HasSubstr("the host is the image"));
  }
}

TEST(ContainerToRun, ObeysTheSecurityContext) {
  auto run = run_of(
      R"({"name":"main","command":["x"],"workingDir":"/w","securityContext":{"runAsUser":7,
          "readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false,
          "capabilities":{"drop":["ALL"],"add":["NET_ADMIN"]}}})",
      R"(,"securityContext":{"runAsUser":1,"runAsGroup":2,"fsGroup":3})");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->spec.user, 7U);
  EXPECT_EQ(run->spec.group, 2U);
  EXPECT_THAT(run->spec.extra_groups, ElementsAre(3U));
  EXPECT_TRUE(run->spec.read_only_root);
  EXPECT_TRUE(run->spec.no_new_privileges);
  EXPECT_EQ(run->spec.capabilities, uint64_t{1} << 12);
  EXPECT_EQ(run->spec.directory, "/w");
}

TEST(ContainerToRun, DropsFromWhatRuntimesLeave) {
  auto run = run_of(R"({"name":"main","command":["x"],"securityContext":{
      "capabilities":{"drop":["KILL"],"add":["NET_ADMIN"]}}})");
  ASSERT_TRUE(run) << run.error().message;
  // As containerd has it: 0xa80425fb, of which 5 is KILL; 12 is NET_ADMIN.
  EXPECT_EQ(run->spec.capabilities, (0xa80425fbU & ~(1U << 5)) | 1U << 12);
}

TEST(PodToRun, HasItsNames) {
  const Pod pod = pod_of(R"({"hostname":"worker-0","subdomain":"group","shareProcessNamespace":true,
      "hostAliases":[{"ip":"1.2.3.4","hostnames":["a","b"]}],
      "containers":[{"name":"main","volumeMounts":[{"name":"shm","mountPath":"/dev/shm"}]}],
      "volumes":[{"name":"shm","emptyDir":{"medium":"Memory","sizeLimit":"1Gi"}}]})");
  const PodSpec spec = pod_to_run(pod, kNode);
  EXPECT_EQ(spec.id, "u");
  EXPECT_EQ(spec.hostname, "worker-0");
  EXPECT_EQ(spec.subdomain, "group");
  EXPECT_EQ(spec.name_space, "ns");
  EXPECT_TRUE(spec.share_processes);
  EXPECT_EQ(spec.shm_bytes, 1UL << 30);
  ASSERT_EQ(spec.host_aliases.size(), 1U);
  EXPECT_THAT(spec.host_aliases[0].names, ElementsAre("a", "b"));
}

TEST(PodToRun, AsksForNamesAsItSays) {
  const auto resolver = [](std::string_view spec) {
    return resolv_conf(pod_to_run(pod_of(std::string(spec)), kNode), "10.96.0.10");
  };
  EXPECT_EQ(resolver("{}"),
            "search ns.svc.cluster.local svc.cluster.local cluster.local\n"
            "nameserver 10.96.0.10\noptions ndots:5\n");
  EXPECT_EQ(resolver(R"({"dnsConfig":{"nameservers":["1.2.3.4"],
                         "searches":["svc.cluster.local","more.example"],
                         "options":[{"name":"ndots","value":"2"},{"name":"edns0"}]}})"),
            "search ns.svc.cluster.local svc.cluster.local cluster.local more.example\n"
            "nameserver 10.96.0.10\nnameserver 1.2.3.4\noptions edns0 ndots:2\n");
  EXPECT_EQ(resolver(R"({"dnsPolicy":"None","dnsConfig":{"nameservers":["1.2.3.4"]}})"),
            "nameserver 1.2.3.4\n");
  const PodSpec full = pod_to_run(
      pod_of(R"({"hostname":"me","subdomain":"group","setHostnameAsFQDN":true})"), kNode);
  EXPECT_EQ(own_name(full), "me.group.ns.svc.cluster.local");
}

TEST(PodToRun, CutsALongName) {
  const std::string name = std::string(62, 'a') + "-" + std::string(10, 'b');
  const Pod pod = pod_of(R"({"containers":[]})", "{}", R"({"name":")" + name + R"("})");
  EXPECT_EQ(pod.hostname(), std::string(62, 'a'));
}

}  // namespace
}  // namespace grapnel::local::kubelet
