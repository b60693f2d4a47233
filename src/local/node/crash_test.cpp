// grapnel is killed at any moment, again and again: no pod is lost, none runs twice, every exit
// code is right. And after all that nothing is left on the machine.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>

#include "base/files.h"
#include "base/random.h"
#include "local/node/node_fixture_test.h"

namespace grapnel::local {
namespace {

int setting(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

std::string pod_name(int i) {
  return "pod-" + std::to_string(i);
}

struct CrashTest : NodeTest {
  int pods = setting("GRAPNEL_CRASH_PODS", 8);
  int kills = setting("GRAPNEL_CRASH_KILLS", 12);

  // Each run of a pod leaves one line in a file outside of it.
  ContainerSpec counted(int i) const {
    ContainerSpec spec =
        shell(pod_name(i), "echo ran >> /count/" + pod_name(i) + "; sleep 0." +
                               std::to_string(i % 10) + "; exit " + std::to_string(i + 1));
    spec.mounts = {{.source = state + "/count", .path = "/count"}};
    return spec;
  }

  // What a kubelet does after each start: find what runs, start what does not.
  static Task<Result<>> bring_up(CrashTest* self) {
    auto found = co_await self->runner->recover();
    if (!found) co_return fail(found.error());
    for (int i = 0; i < self->pods; ++i) {
      auto pod = co_await self->runner->start({.id = pod_name(i), .hostname = pod_name(i)});
      if (!pod) co_return fail(pod.error());
      if (pod->is_lost) {
        // Killed before its shim was there: nothing of it can have run.
        if (!pod->containers.empty()) co_return fail(Reason::kUnknown, "{} is lost", pod->id);
        auto removed = co_await self->runner->remove(pod_name(i));
        if (!removed) co_return removed;
        pod = co_await self->runner->start({.id = pod_name(i), .hostname = pod_name(i)});
        if (!pod) co_return fail(pod.error());
      }
      auto started = co_await self->runner->start_container(pod_name(i), self->counted(i));
      if (!started) co_return fail(started.error());
    }
    co_return Result<>();
  }

  // In a process of its own, to be killed.
  pid_t start_victim() {
    const pid_t child = fork();
    if (child != 0) return child;
    loop.notify_fork(boost::asio::execution_context::fork_child);
    auto opened = run(PodRunner::open(options()));
    if (!opened) _exit(1);
    runner = std::move(*opened);
    const Result<> up = run(bring_up(this));
    if (!up) std::fprintf(stderr, "victim: %s\n", up.error().message.c_str());
    _exit(up ? 0 : 2);
  }
};

TEST_F(CrashTest, NoPodIsLostAndNoneRunsTwice) {
  ASSERT_EQ(mkdir((state + "/count").c_str(), 0777), 0);
  runner.reset();
  Random random(20261115);
  for (int i = 0; i < kills; ++i) {
    const pid_t victim = start_victim();
    ASSERT_GT(victim, 0);
    usleep(static_cast<useconds_t>(random.below(400'000)));
    kill(victim, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(victim, &status, 0), victim);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "kill " << i;
  }
  open_runner();
  const Result<> up = run(bring_up(this));
  ASSERT_TRUE(up) << up.error().message;
  for (int i = 0; i < pods; ++i) {
    auto end = run(runner->wait_for_end(pod_name(i), "main"));
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->state, ContainerState::kExited) << i;
    EXPECT_EQ(end->exit_code, i + 1);
    const auto runs = read_file(state + "/count/" + pod_name(i));
    ASSERT_TRUE(runs) << i;
    EXPECT_EQ(*runs, "ran\n") << "pod " << i << " ran not exactly once";
  }
}

// What a machine would show of us. Zombies are their parent's business.
struct Machine {
  size_t shims = 0;
  size_t mounts = 0;
  std::vector<std::string> links;
  size_t cgroups = 0;
  size_t files = 0;
  bool operator==(const Machine&) const = default;
};

size_t entries(const std::string& directory, const std::string& prefix = "") {
  size_t count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    count += entry.path().filename().string().starts_with(prefix) ? 1 : 0;
  }
  return count;
}

Machine look(const std::string& state) {
  Machine now;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto command = read_file(entry.path().string() + "/cmdline");
    if (command && command->find(state) != std::string::npos) ++now.shims;
    // Shims carry only their pod's name; their program lies in the state directory.
    const auto program = std::filesystem::read_symlink(entry.path() / "exe", error);
    if (program.string().starts_with(state)) ++now.shims;
  }
  const auto mounts = read_file("/proc/self/mountinfo");
  if (mounts) now.mounts = static_cast<size_t>(std::ranges::count(*mounts, '\n'));
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net", error)) {
    now.links.push_back(entry.path().filename());
  }
  std::ranges::sort(now.links);
  for (const char* controller : {"cpu", "memory", "pids"}) {
    now.cgroups += entries(std::string("/sys/fs/cgroup/") + controller, "grapnel-");
  }
  now.files = entries("/proc/self/fd");
  return now;
}

TEST_F(NodeTest, NothingIsLeftBehind) {
  const int rounds = setting("GRAPNEL_LEAK_PODS", 30);
  const Result<> ended = run(runner->shut_down());
  ASSERT_TRUE(ended) << ended.error().message;
  runner.reset();
  const Machine before = look(state);
  EXPECT_EQ(before.shims, 0U);

  open_runner();
  for (int i = 0; i < rounds; ++i) {
    const std::string name = "leak-" + std::to_string(i);
    start_pod(name);
    ASSERT_TRUE(run(runner->start_container(
        name, shell(name, i % 3 == 0 ? "exit 0" : "setsid sleep 1000 & sleep 1000"))));
    if (i % 3 == 1) {
      auto process = run(runner->exec(
          name,
          {.container = "main", .arguments = {"/bin/sleep", "1000"}, .terminal = i % 2 == 0}));
      ASSERT_TRUE(process) << process.error().message;
    }
    ASSERT_TRUE(run(runner->remove(name)));
  }
  EXPECT_EQ(entries(state + "/pods"), 0U);
  EXPECT_EQ(entries(state + "/trash"), 0U);
  const Result<> again = run(runner->shut_down());
  ASSERT_TRUE(again) << again.error().message;
  runner.reset();

  // The kernel takes a moment to take a network apart.
  const Instant deadline = system_clock().instant() + seconds(20);
  Machine after = look(state);
  while (!(after == before) && system_clock().instant() < deadline) {
    usleep(50'000);
    after = look(state);
  }
  EXPECT_EQ(after.shims, 0U);
  EXPECT_EQ(after.mounts, before.mounts);
  EXPECT_EQ(after.links, before.links);
  EXPECT_EQ(after.cgroups, before.cgroups);
  EXPECT_EQ(after.files, before.files);
}

}  // namespace
}  // namespace grapnel::local
