// grapnel is killed at any moment, again and again: no pod is lost, none runs twice, every exit
// code is right. And after all that nothing is left on the machine.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <ranges>
#include <set>

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

size_t entries(const std::string& directory) {
  std::error_code error;
  const std::filesystem::directory_iterator all(directory, error);
  return static_cast<size_t>(std::ranges::distance(begin(all), end(all)));
}

// The cgroups in which one of that name lies, wherever below our own they may be made.
std::vector<std::string> cgroups_with(const std::string& pod) {
  std::vector<std::string> found;
  std::vector<std::string> waiting = {"/sys/fs/cgroup"};
  while (!waiting.empty()) {
    const std::string directory = std::move(waiting.back());
    waiting.pop_back();
    std::error_code error;  // those of others come and go meanwhile
    for (std::filesystem::directory_iterator at(directory, error), last; !error && at != last;
         at.increment(error)) {
      if (!at->is_directory(error) || at->is_symlink(error)) continue;
      if (at->path().filename() == pod) found.push_back(directory);
      waiting.push_back(at->path());
    }
  }
  return found;
}

// What a machine would show of this test's node: others may be at work. Zombies are their parent's
// business.
struct Machine {
  size_t shims = 0;
  size_t mounts = 0;
  size_t links = 0;
  size_t cgroups = 0;
  size_t files = 0;
  bool operator==(const Machine&) const = default;
};

struct Own {
  std::string state;
  std::set<std::string> links = {std::string(kBridgeName)};
  std::vector<std::string> cgroups;
};

Machine look(const Own& own) {
  Machine now;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto command = read_file(entry.path().string() + "/cmdline");
    if (command && command->find(own.state) != std::string::npos) ++now.shims;
    // Shims carry only their pod's name; their program lies in the state directory.
    const auto program = std::filesystem::read_symlink(entry.path() / "exe", error);
    if (program.string().starts_with(own.state)) ++now.shims;
  }
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    now.mounts += line.find(own.state) != std::string::npos ? 1 : 0;
  }
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net", error)) {
    now.links += own.links.contains(entry.path().filename().string()) ? 1 : 0;
  }
  now.cgroups = static_cast<size_t>(std::ranges::count_if(
      own.cgroups, [&](const std::string& path) { return std::filesystem::exists(path, error); }));
  now.files = entries("/proc/self/fd");
  return now;
}

TEST_F(NodeTest, NothingIsLeftBehind) {
  const int rounds = setting("GRAPNEL_LEAK_PODS", 30);
  const Result<> ended = run(runner->shut_down());
  ASSERT_TRUE(ended) << ended.error().message;
  runner.reset();
  Own own{.state = state};
  const Machine before = look(own);
  EXPECT_EQ(before.shims, 0U);
  EXPECT_EQ(before.mounts, 0U);

  open_runner();
  const std::string unique = "leak-" + state.substr(state.size() - 6);
  for (int i = 0; i < rounds; ++i) {
    const std::string name = unique + "-" + std::to_string(i);
    const PodStatus pod = start_pod(name);
    own.links.insert(fmt::format("veth{:08x}", parse_address(pod.address).value_or(0)));
    ASSERT_TRUE(run(runner->start_container(
        name, shell(name, i % 3 == 0 ? "exit 0" : "setsid sleep 1000 & sleep 1000"))));
    if (i == 0) own.cgroups = cgroups_with(name);
    if (i == 1) EXPECT_NE(look(own).shims, 0U);  // what is looked for would be seen
    if (i % 3 == 1) {
      auto process = run(runner->exec(
          name,
          {.container = "main", .arguments = {"/bin/sleep", "1000"}, .terminal = i % 2 == 0}));
      ASSERT_TRUE(process) << process.error().message;
    }
    ASSERT_TRUE(run(runner->remove(name)));
  }
  const bool has_limits = std::ranges::none_of(
      runner->shortcomings(), [](const std::string& s) { return s.starts_with("limits on"); });
  if (has_limits) EXPECT_FALSE(own.cgroups.empty());
  EXPECT_EQ(entries(state + "/pods"), 0U);
  EXPECT_EQ(entries(state + "/trash"), 0U);
  const Result<> again = run(runner->shut_down());
  ASSERT_TRUE(again) << again.error().message;
  runner.reset();

  // The kernel takes a moment to take a network apart.
  const Instant deadline = system_clock().instant() + seconds(20);
  Machine after = look(own);
  while (!(after == before) && system_clock().instant() < deadline) {
    usleep(50'000);
    after = look(own);
  }
  EXPECT_EQ(after.shims, 0U);
  EXPECT_EQ(after.mounts, 0U);
  EXPECT_EQ(after.links, before.links);
  EXPECT_EQ(after.cgroups, 0U);
  EXPECT_EQ(after.files, before.files);
}

}  // namespace
}  // namespace grapnel::local
