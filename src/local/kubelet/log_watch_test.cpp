#include "local/kubelet/log_watch.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace grapnel::local::kubelet {
namespace {

struct LogWatchTest : testing::Test {
  boost::asio::io_context loop;
  LogWatch watch{loop.get_executor(), system_clock()};
  std::string directory;
  std::vector<Spawned> tasks;

  void SetUp() override {
    char name[] = "/tmp/grapnel-logs-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    for (const char* part : {"/a", "/b"}) std::filesystem::create_directory(directory + part);
  }
  void TearDown() override {
    tasks.clear();
    loop.restart();
    loop.poll();
    std::filesystem::remove_all(directory);
  }
  std::string path(const std::string& name) const { return directory + "/" + name; }
  void add(const std::string& name) const { std::ofstream(path(name), std::ios::app) << "line\n"; }

  // Counts how often there was something to look at.
  std::shared_ptr<int> follow(const std::string& name) {
    auto looks = std::make_shared<int>(0);
    auto follower = watch.follow(path(name));
    tasks.push_back(
        spawn(loop.get_executor(), [](auto followed, std::shared_ptr<int> looks) -> Task<> {
          for (;;) {
            co_await followed->wait();
            ++*looks;
          }
        }(std::move(follower), looks)));
    loop.restart();
    loop.poll();
    return looks;
  }
  // Runs what there is to do, and says how much that was.
  size_t rest(Duration length) {
    loop.restart();
    return loop.run_for(length);
  }
  bool runs_until(const std::function<bool()>& done) {
    for (int turn = 0; turn < 1000 && !done(); ++turn) rest(milliseconds(10));
    return done();
  }
};

TEST_F(LogWatchTest, WhoFollowsAQuietLogDoesNothing) {
  add("a/0.log");
  const auto looks = follow("a/0.log");
  EXPECT_EQ(rest(milliseconds(300)), 0U) << "nothing runs";
  EXPECT_EQ(*looks, 0);
}

TEST_F(LogWatchTest, ALineIsSeenByThoseWhoFollowItsLog) {
  add("a/0.log");
  add("b/0.log");
  const auto a = follow("a/0.log");
  const auto also_a = follow("a/0.log");
  const auto b = follow("b/0.log");
  add("a/0.log");
  EXPECT_TRUE(runs_until([&] { return *a > 0 && *also_a > 0; }));
  EXPECT_EQ(*b, 0);
  add("b/0.log");
  EXPECT_TRUE(runs_until([&] { return *b > 0; }));
}

TEST_F(LogWatchTest, ARotatedLogIsSeen) {
  add("a/0.log");
  const auto looks = follow("a/0.log");
  std::filesystem::rename(path("a/0.log"), path("a/0.log.1"));
  EXPECT_TRUE(runs_until([&] { return *looks > 0; }));
  rest(milliseconds(20));
  const int before = *looks;
  add("a/0.log");
  EXPECT_TRUE(runs_until([&] { return *looks > before; }));
}

TEST_F(LogWatchTest, ALogIsStillFollowedByOneWhenAnotherHasGone) {
  add("a/0.log");
  const auto stays = follow("a/0.log");
  follow("a/0.log");
  tasks.pop_back();
  rest(milliseconds(10));
  add("a/0.log");
  EXPECT_TRUE(runs_until([&] { return *stays > 0; }));
}

TEST_F(LogWatchTest, AllLookWhenTheyAreWoken) {
  const auto a = follow("a/0.log");
  const auto b = follow("b/0.log");
  watch.wake_all();
  EXPECT_TRUE(runs_until([&] { return *a == 1 && *b == 1; }));
}

TEST_F(LogWatchTest, WithoutADirectoryToWatchOneLooksNowAndThen) {
  const auto looks = follow("not-there/0.log");
  EXPECT_TRUE(runs_until([&] { return *looks > 2; }));
}

}  // namespace
}  // namespace grapnel::local::kubelet
