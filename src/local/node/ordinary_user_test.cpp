// Everything that pods do for root they do for an ordinary user: the same tests once more, in a
// process that has given up being root.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace grapnel::local {
namespace {

TEST(OrdinaryUser, RunsPodsToo) {
  if (geteuid() != 0) GTEST_SKIP() << "we are an ordinary user: the other tests say it all";
  constexpr uid_t kNobodyElse = 54321;
  const pid_t child = fork();
  if (child == 0) {
    if (chdir("/") != 0 || setgroups(0, nullptr) != 0 || setgid(kNobodyElse) != 0 ||
        setuid(kNobodyElse) != 0) {
      _exit(100);
    }
    execl("/proc/self/exe", "local_node_test", "--gtest_filter=NodeTest.*:CrashTest.*",
          "--gtest_brief=1", nullptr);
    _exit(101);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace grapnel::local
