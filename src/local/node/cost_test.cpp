// What a pod costs: time to start, memory of its shim.
#include <algorithm>
#include <cstdio>

#include "base/files.h"
#include "local/node/node_fixture_test.h"

namespace grapnel::local {
namespace {

long kilobytes(const std::string& status, const std::string& field) {
  const size_t at = status.find(field + ":");
  return at == std::string::npos ? -1 : std::atol(status.c_str() + at + field.size() + 1);
}

TEST_F(NodeTest, AShimIsSmall) {
  start_pod("small");
  ContainerSpec spec = shell("small", "yes 0123456789 | head -100000; exec sleep 1000");
  for (int i = 0; i < 1000; ++i) spec.environment.push_back("X" + std::to_string(i) + "=value");
  ASSERT_TRUE(run(runner->start_container("small", spec)));
  while (output("small").size() < 1100000) loop.run_one_for(milliseconds(20));
  std::ifstream(state + "/pods/small/shim.pid") >> state_pid;
  const auto status = read_file("/proc/" + std::to_string(state_pid) + "/status");
  ASSERT_TRUE(status);
  const long size = kilobytes(*status, "VmRSS");
  std::printf("shim: %ld kB resident, of which its own: %ld kB\n", size,
              kilobytes(*status, "RssAnon"));
  EXPECT_GT(size, 0);
  EXPECT_LE(size, 1536);
}

TEST_F(NodeTest, APodStartsQuickly) {
  std::vector<double> milliseconds_each;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "quick-" + std::to_string(i);
    const Instant before = system_clock().instant();
    start_pod(name);
    const Instant middle = system_clock().instant();
    ASSERT_TRUE(run(runner->start_container(name, shell(name, "exit 0"))));
    const Instant after = system_clock().instant();
    milliseconds_each.push_back(static_cast<double>((after - before).count()) / 1000);
    if (i == 15) {
      std::printf("sandbox %.1f ms, container %.1f ms\n",
                  static_cast<double>((middle - before).count()) / 1000,
                  static_cast<double>((after - middle).count()) / 1000);
    }
  }
  std::ranges::sort(milliseconds_each);
  std::printf("start to running: median %.1f ms, fastest %.1f ms, slowest %.1f ms\n",
              milliseconds_each[15], milliseconds_each[0], milliseconds_each[29]);
  // The aim is 50 ms on an idle machine; tests run on busy ones, under sanitizers.
  EXPECT_LT(milliseconds_each[15], 2000);
}

}  // namespace
}  // namespace grapnel::local
