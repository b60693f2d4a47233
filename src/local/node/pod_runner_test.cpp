#include "local/node/pod_runner.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "local/node/node_fixture_test.h"

namespace grapnel::local {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST_F(NodeTest, AProcessRunsAndItsOutputAndExitCodeAreKept) {
  const ContainerStatus end = run_script("a", "echo hello; echo oops >&2; exit 7");
  EXPECT_EQ(end.state, ContainerState::kExited);
  EXPECT_EQ(end.exit_code, 7);
  EXPECT_EQ(end.exit_signal, 0);
  EXPECT_FALSE(end.out_of_memory);
  EXPECT_GE(end.finished_at, end.started_at);
  EXPECT_THAT(output("a"), HasSubstr("hello\n"));
  EXPECT_THAT(output("a"), HasSubstr("oops\n"));
  std::ifstream file(log_path("a"));
  std::string line;
  std::getline(file, line);
  EXPECT_THAT(line,
              MatchesRegex("[0-9]{4}-[0-9][0-9]-[0-9][0-9]T[0-9:]{8}\\.[0-9]{9}Z std(out|err) "
                           "F (hello|oops)"));
}

TEST_F(NodeTest, WhatAPodSeesIsItsOwn) {
  start_pod("own", {.hostname = "worker-0-0", .subdomain = "exp-1", .shm_bytes = 1 << 20});
  auto started = run(runner->start_container(
      "own",
      shell("own",
            "echo name=$(hostname); echo pid=$$; echo shm=$(df -k /dev/shm | tail -1 | awk "
            "'{print $2}'); echo tmp=$(ls -A /tmp | wc -l); echo links=$(ls /sys/class/net | "
            "tr '\\n' ' '); cat /etc/hosts /etc/resolv.conf; echo state=$(ls " +
                state + " 2>/dev/null | wc -l)")));
  ASSERT_TRUE(started) << started.error().message;
  ASSERT_EQ(run(runner->wait_for_end("own", "main"))->exit_code, 0);
  const std::string text = output("own");
  const std::string address = runner->pods().at(0).address;
  EXPECT_THAT(text, HasSubstr("name=worker-0-0\n"));
  EXPECT_THAT(text, HasSubstr("pid=1\n"));
  EXPECT_THAT(text, HasSubstr("shm=1024\n"));
  EXPECT_THAT(text, HasSubstr("tmp=0\n"));
  EXPECT_THAT(text, HasSubstr("links=eth0 lo\n"));
  EXPECT_THAT(text,
              HasSubstr(address + "\tworker-0-0.exp-1.default.svc.cluster.local\tworker-0-0\n"));
  EXPECT_THAT(text,
              HasSubstr("search default.svc.cluster.local svc.cluster.local cluster.local\n"));
  EXPECT_THAT(text, HasSubstr("nameserver 10.96.0.10\n"));
  EXPECT_THAT(text, HasSubstr("state=0\n")) << "a pod sees the node's own state";
}

TEST_F(NodeTest, WritingStaysInThePod) {
  const std::string mark = state.substr(state.rfind('/') + 1);
  const ContainerStatus end = run_script(
      "writer", "echo x > /etc/" + mark + " && echo y > /tmp/" + mark + " && mkdir -p /opt/" +
                    mark + "/deep && rm /etc/passwd && cat /etc/" + mark);
  EXPECT_EQ(end.exit_code, 0) << output("writer");
  EXPECT_EQ(output("writer"), "x\n");
  struct stat info{};
  EXPECT_NE(stat(("/etc/" + mark).c_str(), &info), 0);
  EXPECT_NE(stat(("/tmp/" + mark).c_str(), &info), 0);
  EXPECT_NE(stat(("/opt/" + mark).c_str(), &info), 0);
  EXPECT_EQ(stat("/etc/passwd", &info), 0);
}

constexpr char kServer[] =
    "exec perl -MIO::Socket::INET -e '$|=1; my $s = IO::Socket::INET->new(LocalPort => 8080, "
    "Listen "
    "=> 5) or die $!; print \"listening\\n\"; while (my $c = $s->accept) { print $c `hostname`; "
    "close "
    "$c }'";

TEST_F(NodeTest, TwoPodsListenOnOnePortAndReachEachOther) {
  std::map<std::string, std::string> addresses;
  for (const std::string name : {"left", "right"}) {
    addresses[name] = start_pod(name).address;
    auto started = run(runner->start_container(name, shell(name, kServer)));
    ASSERT_TRUE(started) << started.error().message;
  }
  EXPECT_NE(addresses["left"], addresses["right"]);
  for (const std::string name : {"left", "right"}) {
    const Instant deadline = system_clock().instant() + seconds(20);
    while (output(name).find("listening") == std::string::npos &&
           system_clock().instant() < deadline) {
      loop.run_one_for(milliseconds(20));
    }
    // From this process, which is in another network.
    auto connected = run(runner->connect(addresses[name], 8080));
    ASSERT_TRUE(connected) << connected.error().message << output(name);
    char answer[64] = {};
    pollfd waiting{.fd = connected->get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&waiting, 1, 10000), 1);
    ASSERT_GT(read(connected->get(), answer, sizeof answer - 1), 0);
    EXPECT_EQ(std::string(answer), name + "\n");
  }
  const ContainerStatus end =
      run_script("client", "exec bash -c 'cat < /dev/tcp/" + addresses["left"] + "/8080'");
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(output("client"), "left\n");
}

TEST_F(NodeTest, AConnectionToNobodyIsRefused) {
  const std::string address = start_pod("quiet").address;
  auto connected = run(runner->connect(address, 9999));
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error().message, HasSubstr("refused"));
}

TEST_F(NodeTest, WhatCannotBeStartedSaysWhy) {
  start_pod("bad");
  auto missing = run(runner->start_container(
      "bad", {.name = "missing", .arguments = {"no-such-program"}, .environment = {"PATH=/bin"}}));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            "exec: \"no-such-program\": executable file not found in $PATH");
  auto path = run(runner->start_container("bad", {.name = "path", .arguments = {"/etc/passwd"}}));
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().message, "exec: \"/etc/passwd\": Permission denied");
  auto mount = run(runner->start_container(
      "bad", {.name = "mount",
              .arguments = {"/bin/true"},
              .mounts = {{.source = "/no/such/directory", .path = "/data"}}}));
  ASSERT_FALSE(mount);
  EXPECT_EQ(mount.error().message,
            "mounting /no/such/directory at /data: No such file or directory");
  // A start that failed does not stand in the way of the next.
  auto again = run(
      runner->start_container("bad", {.name = "path", .attempt = 1, .arguments = {"/bin/true"}}));
  EXPECT_TRUE(again) << again.error().message;
}

TEST_F(NodeTest, TheSameAttemptIsNeverRunTwice) {
  start_pod("once");
  const ContainerSpec spec = shell("once", "echo ran");
  ASSERT_TRUE(run(runner->start_container("once", spec)));
  ASSERT_TRUE(run(runner->wait_for_end("once", "main")));
  auto again = run(runner->start_container("once", spec));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->state, ContainerState::kExited);
  EXPECT_EQ(output("once"), "ran\n");
}

TEST_F(NodeTest, AKilledProcessHasTheCodeOfItsSignal) {
  start_pod("killed");
  auto started = run(runner->start_container("killed", shell("killed", "exec sleep 1000")));
  ASSERT_TRUE(started) << started.error().message;
  ASSERT_GT(started->host_pid, 1);
  ASSERT_EQ(kill(started->host_pid, SIGKILL), 0);
  auto end = run(runner->wait_for_end("killed", "main"));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_code, 137);
  EXPECT_EQ(end->exit_signal, SIGKILL);
  EXPECT_FALSE(end->out_of_memory);
}

TEST_F(NodeTest, GraceIsGivenAndEnds) {
  start_pod("polite");
  ASSERT_TRUE(run(runner->start_container(
      "polite",
      shell("polite", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"))));
  while (output("polite").find("up") == std::string::npos) loop.run_one_for(milliseconds(10));
  ASSERT_TRUE(runner->stop_container("polite", "main", {.grace = seconds(20)}));
  auto end = run(runner->wait_for_end("polite", "main"));
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_THAT(output("polite"), HasSubstr("bye"));

  start_pod("stubborn");
  ASSERT_TRUE(run(runner->start_container(
      "stubborn", shell("stubborn", "trap '' TERM; echo up; while :; do sleep 0.05; done"))));
  while (output("stubborn").find("up") == std::string::npos) loop.run_one_for(milliseconds(10));
  const Instant before = system_clock().instant();
  ASSERT_TRUE(runner->stop_container("stubborn", "main", {.grace = milliseconds(300)}));
  end = run(runner->wait_for_end("stubborn", "main"));
  EXPECT_EQ(end->exit_code, 137);
  EXPECT_GE(system_clock().instant() - before, milliseconds(290));
}

TEST_F(NodeTest, NoProcessOutlivesItsContainer) {
  start_pod("orphans");
  // Daemons in sessions of their own, one of them stopped, none listening to TERM.
  auto started = run(runner->start_container(
      "orphans",
      shell("orphans",
            "for i in 1 2 3; do setsid sh -c 'trap \"\" TERM; while :; do sleep 9; done' "
            "& done; sleep 0.2; kill -STOP $!; echo up; exit 0")));
  ASSERT_TRUE(started) << started.error().message;
  auto end = run(runner->wait_for_end("orphans", "main"));
  EXPECT_EQ(end->exit_code, 0);
  // The kernel has ended them all before the first process could be reaped.
  const ContainerSpec look{.name = "look",
                           .arguments = {"/bin/sh", "-c", "ls -d /proc/[0-9]* | wc -l"},
                           .environment = {"PATH=/bin:/usr/bin"},
                           .log_path = log_path("look")};
  ASSERT_TRUE(run(runner->start_container("orphans", look)));
  ASSERT_TRUE(run(runner->wait_for_end("orphans", "look")));
  EXPECT_EQ(kill(started->host_pid, 0), -1);
}

TEST_F(NodeTest, ContainersOfAPodShareItsNetworkAndNotTheirFiles) {
  start_pod("pair");
  ContainerSpec server = shell("pair", kServer);
  server.name = "server";
  ASSERT_TRUE(run(runner->start_container("pair", server)));
  while (output("pair").find("listening") == std::string::npos) loop.run_one_for(milliseconds(10));
  ContainerSpec client =
      shell("pair-client", "echo secret > /tmp/x; exec bash -c 'cat < /dev/tcp/127.0.0.1/8080'");
  client.name = "client";
  ASSERT_TRUE(run(runner->start_container("pair", client)));
  EXPECT_EQ(run(runner->wait_for_end("pair", "client"))->exit_code, 0);
  EXPECT_EQ(output("pair-client"), "pair\n");
  auto looked =
      run(runner->exec("pair", {.container = "server", .arguments = {"/bin/ls", "/tmp/x"}}));
  ASSERT_TRUE(looked) << looked.error().message;
  EXPECT_EQ(run(runner->wait_for_exec("pair", looked->id))->exit_code, 2);
}

TEST_F(NodeTest, VolumesAreAtTheirPaths) {
  const std::string volume = state + "/volume";
  ASSERT_EQ(mkdir(volume.c_str(), 0755), 0);
  std::ofstream(volume + "/given") << "from outside\n";
  start_pod("volumes", {.memory = {{.path = "memory", .bytes = 2 << 20}}});
  ContainerSpec spec = shell(
      "volumes",
      "cat /data/given; echo back > /data/made; echo no > /fixed/made; cat /deep/in/here/given; "
      "cat /one/file.txt; df -k /memory | tail -1 | awk '{print $2}'; echo m > /memory/x; cat "
      "/data/inner/given");
  spec.mounts = {{.source = volume, .path = "/data/inner"},
                 {.source = volume, .path = "/data"},
                 {.source = volume, .path = "/fixed", .read_only = true},
                 {.source = volume, .path = "/deep/in/here"},
                 {.source = volume + "/given", .path = "/one/file.txt"},
                 {.source = runner->pod_directory("volumes") + "/memory", .path = "/memory"}};
  auto started = run(runner->start_container("volumes", spec));
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(run(runner->wait_for_end("volumes", "main"))->exit_code, 0);
  const std::string text = output("volumes");
  EXPECT_THAT(text, HasSubstr("from outside\n"));
  EXPECT_THAT(text, HasSubstr("Read-only file system"));
  EXPECT_THAT(text, HasSubstr("2048\n"));
  EXPECT_TRUE(text.ends_with("from outside\n")) << text;
  std::ifstream made(volume + "/made");
  std::string line;
  std::getline(made, line);
  EXPECT_EQ(line, "back");
}

std::string read_all(int fd) {
  std::string text;
  char chunk[256];
  for (ssize_t got = 0; (got = read(fd, chunk, sizeof chunk)) > 0;) {
    text.append(chunk, static_cast<size_t>(got));
  }
  return text;
}

TEST_F(NodeTest, ExecRunsBesideTheContainersProcess) {
  start_pod("exec");
  ASSERT_TRUE(
      run(runner->start_container("exec", shell("exec", "echo $$ > /tmp/pid; exec sleep 1000"))));
  auto process = run(runner->exec(
      "exec",
      {.container = "main",
       .arguments = {"/bin/sh", "-c", "read x; echo got $x $A; hostname >&2; cat /tmp/pid; exit 5"},
       .environment = {"A=1", "PATH=/bin:/usr/bin"},
       .with_stdin = true}));
  ASSERT_TRUE(process) << process.error().message;
  ASSERT_EQ(write(process->input.get(), "word\n", 5), 5);
  EXPECT_EQ(read_all(process->output.get()), "got word 1\n1\n");
  EXPECT_EQ(read_all(process->error.get()), "exec\n");
  auto result = run(runner->wait_for_exec("exec", process->id));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 5);

  auto missing = run(runner->exec("exec", {.container = "main", .arguments = {"nothing-here"}}));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("executable file not found"));
  auto nowhere = run(runner->exec("exec", {.container = "other", .arguments = {"true"}}));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().message, "container other is not running");
}

TEST_F(NodeTest, ManyExecsAtOnceAllReportTheirOwnEnd) {
  start_pod("many");
  ASSERT_TRUE(run(runner->start_container("many", shell("many", "exec sleep 1000"))));
  std::vector<ExecProcess> processes;
  for (int i = 0; i < 30; ++i) {
    auto process =
        run(runner->exec("many", {.container = "main",
                                  .arguments = {"/bin/sh", "-c", "exit " + std::to_string(i)}}));
    ASSERT_TRUE(process) << process.error().message;
    processes.push_back(std::move(*process));
  }
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(run(runner->wait_for_exec("many", processes[static_cast<size_t>(i)].id))->exit_code,
              i);
  }
}

TEST_F(NodeTest, ExecWithATerminal) {
  start_pod("tty");
  ASSERT_TRUE(run(runner->start_container("tty", shell("tty", "exec sleep 1000"))));
  auto process = run(runner->exec("tty", {.container = "main",
                                          .arguments = {"/bin/sh", "-c", "tty; read x; echo [$x]"},
                                          .environment = {"PATH=/bin:/usr/bin", "TERM=dumb"},
                                          .terminal = true}));
  ASSERT_TRUE(process) << process.error().message;
  ASSERT_EQ(write(process->input.get(), "hi\n", 3), 3);
  const std::string text = read_all(process->input.get());
  EXPECT_THAT(text, HasSubstr("/dev/pts/0\r\n"));
  EXPECT_THAT(text, HasSubstr("[hi]\r\n"));
  EXPECT_EQ(run(runner->wait_for_exec("tty", process->id))->exit_code, 0);
}

TEST_F(NodeTest, AContainerHasNoMoreRightsThanOnKubernetes) {
  const ContainerStatus end =
      run_script("rights",
                 "grep -E 'Cap(Eff|Bnd)' /proc/self/status; mount -t tmpfs x /mnt 2>&1; echo 1 > "
                 "/proc/sys/kernel/panic; ls /dev | sort | tr '\\n' ' '");
  EXPECT_EQ(end.exit_code, 0);
  const std::string text = output("rights");
  EXPECT_THAT(text, HasSubstr("CapEff:\t00000000a80425fb"));
  EXPECT_THAT(text, HasSubstr("CapBnd:\t00000000a80425fb"));
  EXPECT_THAT(text, HasSubstr("mount: /mnt: permission denied"));
  EXPECT_THAT(text, HasSubstr(runner->isolation() == Isolation::kRoot ? "Read-only file system"
                                                                      : "Permission denied"));
  EXPECT_THAT(text, HasSubstr("fd full mqueue null ptmx pts random shm stderr stdin stdout tty "
                              "urandom zero"));
}

TEST_F(NodeTest, APodThatForksWithoutEndIsHeld) {
  start_pod("forks");
  ContainerSpec spec =
      shell("forks", "i=0; while [ $i -lt 100 ]; do sleep 100 & i=$((i+1)); done; echo all");
  spec.limits.processes = 20;
  auto started = run(runner->start_container("forks", spec));
  ASSERT_TRUE(started) << started.error().message;
  auto end = run(runner->wait_for_end("forks", "main"));
  EXPECT_NE(end->exit_code, 0);
  EXPECT_THAT(output("forks"), Not(HasSubstr("all\n")));
  EXPECT_THAT(output("forks"), HasSubstr("ork"));  // "Cannot fork"
}

TEST_F(NodeTest, TooMuchMemoryIsReportedAsThat) {
  if (!runner->shortcomings().empty()) {
    EXPECT_THAT(runner->shortcomings(), testing::Contains(HasSubstr("limits on memory are not")));
    return;  // no cgroup can be written here, and that is said
  }
  start_pod("hungry");
  ContainerSpec spec = shell("hungry", "exec perl -e '$x = \"a\" x (200 << 20); print length $x'");
  spec.limits.memory_bytes = 64 << 20;
  auto started = run(runner->start_container("hungry", spec));
  ASSERT_TRUE(started) << started.error().message;
  auto end = run(runner->wait_for_end("hungry", "main"));
  EXPECT_EQ(end->exit_code, 137);
  EXPECT_TRUE(end->out_of_memory);
}

TEST_F(NodeTest, PodsOutliveTheRunnerAndAreFoundAgain) {
  start_pod("long", {.note = "what the kubelet wants to know"});
  ASSERT_TRUE(run(runner->start_container("long", shell("long", "sleep 1; exit 4"))));
  start_pod("running");
  auto started = run(runner->start_container("running", shell("running", "exec sleep 1000")));
  ASSERT_TRUE(started);
  start_pod("victim");
  ASSERT_TRUE(run(runner->start_container("victim", shell("victim", "exec sleep 1000"))));
  std::ifstream(state + "/pods/victim/shim.pid") >> state_pid;
  const std::string address = runner->pods().at(0).address;

  runner.reset();
  ASSERT_EQ(kill(state_pid, SIGKILL), 0);
  usleep(1'500'000);
  open_runner();
  auto found = run(runner->recover());
  ASSERT_TRUE(found) << found.error().message;
  std::map<std::string, PodStatus> pods;
  for (const PodStatus& pod : *found) pods[pod.id] = pod;
  ASSERT_EQ(pods.size(), 3U);
  EXPECT_EQ(pods["long"].note, "what the kubelet wants to know");
  EXPECT_EQ(pods["long"].address, address);
  EXPECT_FALSE(pods["long"].is_lost);
  EXPECT_EQ(pods["long"].containers["main"].exit_code, 4);
  EXPECT_EQ(pods["running"].containers["main"].state, ContainerState::kRunning);
  EXPECT_EQ(pods["running"].containers["main"].host_pid, started->host_pid);
  EXPECT_TRUE(pods["victim"].is_lost);
  EXPECT_EQ(pods["victim"].containers["main"].state, ContainerState::kLost);
  // Found again, they can be used as before, and addresses in use are not given out twice.
  EXPECT_NE(start_pod("new").address, pods["running"].address);
  ASSERT_TRUE(runner->stop_container("running", "main", {.grace = milliseconds(0)}));
  EXPECT_EQ(run(runner->wait_for_end("running", "main"))->exit_code, 137);
}

TEST_F(NodeTest, TheDeathOfAShimIsNoticedAndEndsThePod) {
  start_pod("doomed");
  auto started =
      run(runner->start_container("doomed", shell("doomed", "setsid sleep 1000 & wait")));
  ASSERT_TRUE(started);
  std::ifstream(state + "/pods/doomed/shim.pid") >> state_pid;
  ASSERT_EQ(kill(state_pid, SIGKILL), 0);
  auto end = run(runner->wait_for_end("doomed", "main"));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->state, ContainerState::kLost);
  EXPECT_EQ(lost, std::vector<std::string>{"doomed"});
  const Instant deadline = system_clock().instant() + seconds(10);
  while (kill(started->host_pid, 0) == 0 && system_clock().instant() < deadline) usleep(1000);
  EXPECT_NE(kill(started->host_pid, 0), 0) << "a process outlived its pod";
}

}  // namespace
}  // namespace grapnel::local
