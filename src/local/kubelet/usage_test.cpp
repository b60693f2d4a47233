#include "local/kubelet/usage.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstring>

namespace grapnel::local::kubelet {
namespace {

TEST(ProcessStat, IsReadWhateverTheProcessIsCalled) {
  const std::string numbers = " S 7 1 1 0 -1 4194560 10 20 0 0 100 20 3 4 20 0 1 0 555 1000 42 9 9";
  for (const std::string name : {"python3", "a b", "odd) S 1", "(", ") "}) {
    const auto stat = parse_process_stat("12 (" + name + ")" + numbers);
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(*stat,
              (ProcessStat{.pid = 12, .parent = 7, .ticks = 127, .started = 555, .pages = 42}));
  }
}

TEST(ProcessStat, WhatIsCutOffIsNone) {
  for (const auto* text : {"", "12", "12 (x", "12 (x) S 1 2 3", ") (",
                           "x (x) S 7 1 1 0 -1 4 1 2 0 0 1 2 3 4 20 0 1 0 5 10 42 9 9"}) {
    EXPECT_FALSE(parse_process_stat(text)) << text;
  }
}

TEST(TreeUsage, SumsAProcessAndAllBelowIt) {
  const std::vector<ProcessStat> all{{.pid = 1, .parent = 0, .ticks = 1000, .pages = 1000},
                                     {.pid = 5, .parent = 1, .ticks = 1, .started = 9, .pages = 10},
                                     {.pid = 6, .parent = 5, .ticks = 2, .pages = 20},
                                     {.pid = 7, .parent = 6, .ticks = 3, .pages = 30},
                                     {.pid = 8, .parent = 1, .ticks = 500, .pages = 500}};
  const auto sum = usage_of_tree(all, 5);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->ticks, 6U);
  EXPECT_EQ(sum->pages, 60U);
  EXPECT_EQ(sum->started, 9U);
  EXPECT_FALSE(usage_of_tree(all, 99));
}

TEST(TreeUsage, AListThatIsNoTreeHasAnEnd) {
  const std::vector<ProcessStat> loop{{.pid = 1, .parent = 2}, {.pid = 2, .parent = 1}};
  EXPECT_TRUE(usage_of_tree(loop, 1));
}

TEST(UsageSampler, TellsWhatAProcessUses) {
  const pid_t busy = ::fork();
  if (busy == 0) {
    constexpr size_t kHeld = 64 << 20;
    auto* memory = static_cast<volatile char*>(std::malloc(kHeld));
    for (size_t i = 0; i < kHeld; i += 4096) memory[i] = 1;
    for (;;) memory[0] = static_cast<char>(memory[0] + 1);
  }
  boost::asio::io_context loop;
  UsageSampler sampler(system_clock());
  std::map<int, Usage> used;
  auto task = spawn(loop.get_executor(), [](UsageSampler& s, int pid, auto& out) -> Task<> {
    co_await system_clock().sleep(milliseconds(300));  // until it has its memory
    out = co_await s.measure({pid, 999'999'999});
  }(sampler, busy, used));
  loop.run_for(seconds(10));
  ::kill(busy, SIGKILL);
  ::waitpid(busy, nullptr, 0);
  ASSERT_EQ(used.size(), 1U) << "one that is not there is left out";
  EXPECT_GT(used[busy].nanocores, 50'000'000U);
  EXPECT_LT(used[busy].nanocores, 1'500'000'000U);
  EXPECT_GT(used[busy].bytes, 64U << 20);
  EXPECT_GE(used[busy].window, milliseconds(500));
}

}  // namespace
}  // namespace grapnel::local::kubelet
