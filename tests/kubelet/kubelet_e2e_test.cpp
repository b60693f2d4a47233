// Pods on a real kubelet of ours, from the user's side.
#include <gmock/gmock.h>

#include "tests/kubelet/cluster_fixture.h"

namespace grapnel::local {
namespace {

using testing::HasSubstr;

TEST_F(KubeletTest, RegistersItsNode) {
  auto node = run(client->get(kube::kinds::kNode, {.name = "laptop"}));
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(string_or(at(*node, "metadata", "labels", "kubernetes.io/hostname")), "laptop");
  EXPECT_FALSE(string_or(at(*node, "status", "allocatable", "cpu")).empty());
  EXPECT_THAT(to_text(*find(*node, "status")), HasSubstr("\"KubeletReady\""));
}

TEST_F(KubeletTest, RunsAPodToItsEnd) {
  create_pod("p", R"(
restartPolicy: Never
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "echo hello $GREETED; echo $(NAME) >&2; echo last > /dev/termination-log; exit 3"]
  env:
  - {name: GREETED, value: world}
  - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
)");
  ASSERT_TRUE(wait_for_phase("p", "Failed"));
  const Json status = status_of("p");
  const Json main = container(status);
  EXPECT_EQ(int_or(at(main, "state", "terminated", "exitCode")), 3);
  EXPECT_EQ(string_or(at(main, "state", "terminated", "reason")), "Error");
  EXPECT_EQ(string_or(at(main, "state", "terminated", "message")), "last\n");
  EXPECT_EQ(int_or(find(main, "restartCount"), -1), 0);
  EXPECT_EQ(logs("p"), "hello world\np\n");
  EXPECT_EQ(logs("p", {.tail_lines = 1}), "p\n");
}

TEST_F(KubeletTest, RestartsWhatFails) {
  create_pod("p", R"(
restartPolicy: OnFailure
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "echo run; test -e /data/again || { touch /data/again; exit 1; }"]
  volumeMounts: [{name: data, mountPath: /data}]
volumes: [{name: data, emptyDir: {}}]
)");
  ASSERT_TRUE(wait_for_phase("p", "Succeeded"));
  const Json main = container(status_of("p"));
  EXPECT_EQ(int_or(find(main, "restartCount")), 1);
  EXPECT_EQ(int_or(at(main, "lastState", "terminated", "exitCode")), 1);
  EXPECT_EQ(logs("p"), "run\n");
  EXPECT_EQ(logs("p", {.previous = true}), "run\n");
}

TEST_F(KubeletTest, DeletesInGrace) {
  create_pod("p", R"(
terminationGracePeriodSeconds: 20
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"]
)");
  ASSERT_TRUE(wait_for_phase("p", "Running"));
  auto removed = run(client->remove(kube::kinds::kPod, {.ns = "default", .name = "p"}));
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(wait_until_gone("p", seconds(15)));
}

TEST_F(KubeletTest, MakesVolumes) {
  create(kube::kinds::kConfigMap, R"(
metadata: {name: settings, namespace: default}
data: {a: first, b: second}
)");
  create(kube::kinds::kSecret, R"(
metadata: {name: password, namespace: default}
stringData: {word: sesame}
)");
  create_pod("p", R"(
restartPolicy: Never
initContainers:
- name: setup
  image: any
  command: [/bin/sh, -c, "echo made > /scratch/file"]
  volumeMounts: [{name: work, mountPath: /scratch}]
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "cat /scratch/file /etc/settings/a; echo; cat /etc/one; echo; cat /etc/secret/word; echo; echo $WORD $B; echo $(df --output=size -k /dev/shm | tail -1); cat /etc/info/name; echo; touch /etc/settings/x 2>/dev/null || echo read-only"]
  env:
  - {name: WORD, valueFrom: {secretKeyRef: {name: password, key: word}}}
  - {name: B, valueFrom: {configMapKeyRef: {name: settings, key: b}}}
  volumeMounts:
  - {name: work, mountPath: /scratch}
  - {name: settings, mountPath: /etc/settings}
  - {name: settings, mountPath: /etc/one, subPath: b}
  - {name: secret, mountPath: /etc/secret}
  - {name: shm, mountPath: /dev/shm}
  - {name: info, mountPath: /etc/info}
volumes:
- {name: work, emptyDir: {}}
- {name: settings, configMap: {name: settings}}
- {name: secret, secret: {secretName: password}}
- {name: shm, emptyDir: {medium: Memory, sizeLimit: 128Mi}}
- {name: info, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
)");
  ASSERT_TRUE(wait_for_phase("p", "Succeeded"));
  const std::string text = logs("p");
  EXPECT_EQ(text, "made\nfirst\nsecond\nsesame\nsesame second\n131072\np\nread-only\n");
}

TEST_F(KubeletTest, SaysWhatAPodWaitsFor) {
  create_pod("p", R"(
restartPolicy: Never
containers:
- name: main
  image: any
  command: ["true"]
  volumeMounts: [{name: later, mountPath: /later}]
volumes: [{name: later, configMap: {name: later}}]
)");
  until([&] {
    return to_text(status_of("p")).find("configmap \\\"later\\\" not found") != std::string::npos;
  });
  EXPECT_EQ(phase_of("p"), "Pending");
  create(kube::kinds::kConfigMap, "metadata: {name: later, namespace: default}\ndata: {a: b}\n");
  EXPECT_TRUE(wait_for_phase("p", "Succeeded"));
}

TEST_F(KubeletTest, SaysThatThereIsNoCommand) {
  create_pod("p", "containers:\n- {name: main, image: any}\n");
  until([&] { return to_text(status_of("p")).find("the host is the image") != std::string::npos; });
  EXPECT_EQ(phase_of("p"), "Pending");
}

TEST_F(KubeletTest, PodsFindEachOtherByName) {
  create(kube::kinds::kService, R"(
metadata: {name: group, namespace: default}
spec: {clusterIP: None, selector: {app: group}, publishNotReadyAddresses: true}
)");
  create_pod("a", R"(
hostname: a-0
subdomain: group
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "sleep 60"]
)",
             "{app: group}");
  create_pod("b", R"(
restartPolicy: Never
hostname: b-0
subdomain: group
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "for i in $(seq 100); do getent hosts a-0.group && break; sleep 0.1; done; hostname -f"]
)",
             "{app: group}");
  ASSERT_TRUE(wait_for_phase("b", "Succeeded"));
  const std::string address(string_or(find(status_of("a"), "podIP")));
  EXPECT_FALSE(address.empty());
  EXPECT_THAT(logs("b"), HasSubstr(address));
  EXPECT_THAT(logs("b"), HasSubstr("b-0.group.default.svc.cluster.local"));
}

TEST_F(KubeletTest, PodsOutliveIt) {
  create_pod("p", R"(
restartPolicy: Never
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "echo one; sleep 2; echo two; exit 5"]
)");
  create_pod("q", R"(
restartPolicy: Never
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "while [ ! -e /tmp/never ]; do sleep 0.1; done"]
)");
  ASSERT_TRUE(wait_for_phase("p", "Running"));
  ASSERT_TRUE(wait_for_phase("q", "Running"));
  const std::string id(string_or(find(container(status_of("q")), "containerID")));
  restart_kubelet();
  ASSERT_TRUE(wait_for_phase("p", "Failed"));
  EXPECT_EQ(int_or(at(container(status_of("p")), "state", "terminated", "exitCode")), 5);
  EXPECT_EQ(logs("p"), "one\ntwo\n");
  EXPECT_EQ(phase_of("q"), "Running");
  EXPECT_EQ(string_or(find(container(status_of("q")), "containerID")), id);
}

TEST_F(KubeletTest, FollowsALogToItsEnd) {
  create_pod("p", R"(
restartPolicy: Never
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "for i in 1 2 3; do echo line $i; sleep 0.3; done"]
)");
  until([&] { return phase_of("p") != "Pending"; });
  EXPECT_EQ(logs("p", {.follow = true}), "line 1\nline 2\nline 3\n");
}

TEST_F(KubeletTest, ProbesByExecAndHttp) {
  create_pod("p", R"(
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "sleep 1; touch /tmp/ready; cd /tmp && exec python3 -m http.server 8080"]
  startupProbe: {exec: {command: [/bin/sh, -c, "test -e /tmp/ready"]}, periodSeconds: 1, failureThreshold: 30}
  readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
  livenessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1, failureThreshold: 30}
)");
  ASSERT_TRUE(wait_for_phase("p", "Running"));
  EXPECT_FALSE(bool_or(find(container(status_of("p")), "ready")));
  until([&] { return bool_or(find(container(status_of("p")), "ready")); }, seconds(20));
  EXPECT_TRUE(bool_or(find(container(status_of("p")), "started")));
}

TEST_F(KubeletTest, EndsWhatIsNotAliveAndRunsHooks) {
  create_pod("p", R"(
restartPolicy: Never
terminationGracePeriodSeconds: 5
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "trap 'cat /tmp/hooks; exit 9' TERM; while :; do sleep 0.05; done"]
  lifecycle:
    postStart: {exec: {command: [/bin/sh, -c, "echo post >> /tmp/hooks"]}}
    preStop: {exec: {command: [/bin/sh, -c, "echo pre >> /tmp/hooks"]}}
  livenessProbe: {exec: {command: ["false"]}, periodSeconds: 1, failureThreshold: 1}
)");
  ASSERT_TRUE(wait_for_phase("p", "Failed", seconds(30)));
  EXPECT_EQ(int_or(at(container(status_of("p")), "state", "terminated", "exitCode")), 9);
  EXPECT_THAT(logs("p"), HasSubstr("post\npre\n"));
}

// A user's terminal, or what stands in its place.
class FakeStreams final : public PodStreams {
 public:
  FakeStreams(Executor executor, std::vector<Input> inputs)
      : inputs_(std::move(inputs)), never_(executor) {}
  std::string out;
  std::string err;

  Task<Result<Input>> read() override {
    if (next_ < inputs_.size()) co_return inputs_[next_++];
    co_await never_.wait();
    co_return Input{.closed = true};
  }
  Task<Result<>> write_stdout(std::string_view data) override {
    out += data;
    co_return Result<>();
  }
  Task<Result<>> write_stderr(std::string_view data) override {
    err += data;
    co_return Result<>();
  }

 private:
  std::vector<Input> inputs_;
  size_t next_ = 0;
  Signal never_;
};

constexpr const char* kSleeper = R"(
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "sleep 600"]
  env: [{name: MINE, value: here}]
)";

TEST_F(KubeletTest, RunsProgramsInAPod) {
  create_pod("p", kSleeper);
  ASSERT_TRUE(wait_for_phase("p", "Running"));
  FakeStreams streams(executor, {{.data = "typed\n"}, {.closed = true}});
  auto exit = run(kubelet->backend().exec(
      {.ns = "default",
       .pod = "p",
       .command = {"/bin/sh", "-c", "cat; echo $MINE; hostname; echo oops >&2; exit 4"},
       .stdin_open = true,
       .stdout_open = true,
       .stderr_open = true},
      streams));
  ASSERT_TRUE(exit) << exit.error().message;
  EXPECT_EQ(exit->code, 4);
  EXPECT_EQ(streams.out, "typed\nhere\np\n");
  EXPECT_EQ(streams.err, "oops\n");
}

TEST_F(KubeletTest, GivesATerminal) {
  create_pod("p", kSleeper);
  ASSERT_TRUE(wait_for_phase("p", "Running"));
  FakeStreams streams(executor, {{.resize = PodStreams::Resize{.width = 100, .height = 30}},
                                 {.data = "tty; stty size; exit 3\n"}});
  auto exit = run(kubelet->backend().exec({.ns = "default",
                                           .pod = "p",
                                           .command = {"/bin/sh"},
                                           .stdin_open = true,
                                           .stdout_open = true,
                                           .tty = true},
                                          streams));
  ASSERT_TRUE(exit) << exit.error().message;
  EXPECT_EQ(exit->code, 3);
  EXPECT_THAT(streams.out, HasSubstr("/dev/pts/"));
  EXPECT_THAT(streams.out, HasSubstr("30 100"));
}

TEST_F(KubeletTest, SaysWhatCannotBeRun) {
  create_pod("p", kSleeper);
  ASSERT_TRUE(wait_for_phase("p", "Running"));
  FakeStreams streams(executor, {});
  auto exit = run(kubelet->backend().exec(
      {.ns = "default", .pod = "p", .command = {"/no/such/program"}, .stdout_open = true},
      streams));
  ASSERT_TRUE(exit) << exit.error().message;
  EXPECT_NE(exit->code, 0);
  EXPECT_FALSE(exit->error.empty());
  EXPECT_FALSE(run(kubelet->backend().exec(
      {.ns = "default", .pod = "p", .container = "x", .command = {"true"}}, streams)));
}

Task<std::string> ask(PodBackend& backend, std::string pod, uint16_t port) {
  auto stream = co_await backend.connect("default", pod, port);
  if (!stream) co_return "error: " + stream.error().message;
  co_await (*stream)->write("GET /page HTTP/1.0\r\n\r\n");
  std::string answer;
  for (;;) {
    auto piece = co_await (*stream)->read();
    if (!piece || piece->empty()) co_return answer;
    answer += *piece;
  }
}

TEST_F(KubeletTest, ForwardsPorts) {
  create_pod("p", R"(
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "mkdir /tmp/www; echo it works > /tmp/www/page; cd /tmp/www && exec python3 -m http.server 8080"]
  readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
)");
  until([&] { return bool_or(find(container(status_of("p")), "ready")); }, seconds(20));
  EXPECT_THAT(run(ask(kubelet->backend(), "p", 8080)), HasSubstr("it works"));
  EXPECT_THAT(run(ask(kubelet->backend(), "p", 8081)), HasSubstr("refused"));
}

TEST_F(KubeletTest, ServicesHaveAddresses) {
  const Json service = create(kube::kinds::kService, R"(
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
)");
  const std::string address(string_or(at(service, "spec", "clusterIP")));
  create_pod("server", R"(
containers:
- name: main
  image: any
  command: [/bin/sh, -c, "mkdir /tmp/www; echo it works > /tmp/www/page; cd /tmp/www && exec python3 -m http.server 8080"]
)",
             "{app: web}");
  create_pod("client", R"(
restartPolicy: Never
containers:
- name: main
  image: any
  command:
  - /bin/sh
  - -c
  - |
    for i in $(seq 100); do
      python3 -c 'import urllib.request; print(urllib.request.urlopen("http://web/page", timeout=2).read().decode(), end="")' 2>/dev/null && break
      sleep 0.1
    done
    echo $WEB_SERVICE_HOST
)");
  ASSERT_TRUE(wait_for_phase("client", "Succeeded"));
  EXPECT_EQ(logs("client"), "it works\n" + address + "\n");
}

}  // namespace
}  // namespace grapnel::local
