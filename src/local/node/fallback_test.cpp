// Where namespaces are forbidden: plain processes, on loopback addresses of their own.
#include <gmock/gmock.h>
#include <signal.h>

#include "local/node/node_fixture_test.h"
#include "local/node/sandbox.h"

namespace grapnel::local {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct PlainNodeTest : NodeTest {
  PodRunnerOptions options() override {
    PodRunnerOptions plain = NodeTest::options();
    plain.isolation = Isolation::kNone;
    return plain;
  }
};

TEST_F(PlainNodeTest, SaysSoAndRunsPodsAllTheSame) {
  EXPECT_THAT(runner->shortcomings(), Contains(HasSubstr("pods are not isolated")));
  EXPECT_EQ(runner->network(), nullptr);
  const ContainerStatus end = run_script("plain", "echo hello; exit 6");
  EXPECT_EQ(end.exit_code, 6);
  EXPECT_EQ(output("plain"), "hello\n");
}

TEST_F(PlainNodeTest, EachPodHasALoopbackAddressOfItsOwn) {
  for (const std::string name : {"a", "b"}) {
    const std::string address = start_pod(name).address;
    EXPECT_TRUE(address.starts_with("127.88.0.")) << address;
    ASSERT_TRUE(run(runner->start_container(
        name, shell(name,
                    "exec perl -MIO::Socket::INET -e '$|=1; my $s = IO::Socket::INET->new("
                    "LocalAddr => \"" +
                        address +
                        "\", LocalPort => 38080, Listen => 5) or die $!; print \"up\\n\"; "
                        "sleep 100'"))));
    while (output(name).find("up") == std::string::npos) loop.run_one_for(milliseconds(20));
    EXPECT_TRUE(run(runner->connect(address, 38080)));
  }
}

TEST_F(PlainNodeTest, NothingOfAContainerStaysBehind) {
  start_pod("family");
  ASSERT_TRUE(run(runner->start_container(
      "family", shell("family",
                      "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; sleep 0.2; exit "
                      "0"))));
  ASSERT_TRUE(run(runner->wait_for_end("family", "main")));
  int first = 0;
  int second = 0;
  ASSERT_EQ(std::sscanf(output("family").c_str(), "%d\n%d", &first, &second), 2);
  ASSERT_TRUE(run(runner->remove("family")));
  const Instant deadline = system_clock().instant() + seconds(10);
  const auto alive = [&] { return kill(first, 0) == 0 || kill(second, 0) == 0; };
  while (alive() && system_clock().instant() < deadline) usleep(1000);
  EXPECT_FALSE(alive());
}

TEST_F(PlainNodeTest, ExecAndStopWork) {
  start_pod("e");
  ASSERT_TRUE(run(runner->start_container("e", shell("e", "exec sleep 1000"))));
  auto process =
      run(runner->exec("e", {.container = "main", .arguments = {"/bin/sh", "-c", "exit 9"}}));
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(run(runner->wait_for_exec("e", process->id))->exit_code, 9);
  ASSERT_TRUE(runner->stop_container("e", "main", {}));
  EXPECT_EQ(run(runner->wait_for_end("e", "main"))->exit_code, 143);
}

TEST(Isolation, IsFoundByTrying) {
  const IsolationFound found = find_isolation();
  EXPECT_EQ(found.isolation == Isolation::kNone, !found.why.empty());
  if (geteuid() != 0) EXPECT_NE(found.isolation, Isolation::kRoot);
}

}  // namespace
}  // namespace grapnel::local
