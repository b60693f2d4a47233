#include "local/kubelet/kept_logs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "local/kubelet/container_spec.h"

namespace grapnel::local::kubelet {
namespace {

namespace fs = std::filesystem;

struct KeptLogsTest : testing::Test {
  fs::path folder = fs::path(testing::TempDir()) / fmt::format("grapnel_kept_{}", ::getpid());
  bool wanted = true;
  KeptLogs kept{folder.string(), [this](const Json& pod) {
                  return wanted && string_or(at(pod, "metadata", "labels", "keep")) == "yes";
                }};
  KeptLogsTest() { fs::create_directories(folder / "pods"); }
  ~KeptLogsTest() override { fs::remove_all(folder); }

  static Pod pod(std::string_view name, std::string_view keep = "yes") {
    const auto object = parse_json(fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"a","uid":"uid-{0}","labels":{{"keep":"{1}"}}}},)"
        R"("spec":{{"containers":[{{"name":"main"}}],"initContainers":[{{"name":"code"}}]}},)"
        R"("status":{{"phase":"Failed"}}}})",
        name, keep));
    return *decode_pod(*object);
  }
  void write_log(const Pod& of, std::string_view container, int attempt) const {
    const fs::path path = log_directory_of_pod(folder.string(), of);
    fs::create_directories(path / container);
    std::ofstream(path / container / fmt::format("{}.log", attempt)) << "text";
  }
  size_t folders() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder / "pods"), {}));
  }
};

TEST_F(KeptLogsTest, ThoseThatAreWantedStayAndTellWhoseTheyWere) {
  for (const auto& one : {pod("first"), pod("second", "no")}) {
    write_log(one, "main", 0);
    kept.take(one);
  }
  const auto all = kept.all();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(string_or(at(all[0], "metadata", "name")), "first");
  EXPECT_EQ(string_or(at(all[0], "metadata", "labels", "keep")), "yes");
  EXPECT_EQ(string_or(at(all[0], "status", "phase")), "Failed");
  EXPECT_EQ(folders(), 1U);
}

TEST_F(KeptLogsTest, AreFoundByPodAndContainer) {
  const auto one = pod("first");
  for (const int attempt : {0, 1, 10}) write_log(one, "main", attempt);
  write_log(one, "code", 0);
  kept.take(one);
  const auto path = [&](auto... arguments) {
    const auto file = kept.log_file(arguments...);
    return file ? file->substr(file->find("uid-first") + 9) : "none";
  };
  EXPECT_EQ(path("a", "first", "", false), "/main/10.log");
  EXPECT_EQ(path("a", "first", "", true), "/main/9.log");
  EXPECT_EQ(path("a", "first", "code", false), "/code/0.log");
  EXPECT_EQ(path("a", "first", "code", true), "none");
  EXPECT_EQ(path("a", "first", "../first", false), "none");
  EXPECT_EQ(path("a", "fir", "", false), "none");
  EXPECT_EQ(path("b", "first", "", false), "none");
}

TEST_F(KeptLogsTest, GoWhenNobodyWantsThemAnyMore) {
  const auto gone = pod("gone");
  const auto alive = pod("alive");
  const auto unseen = pod("unseen");  // it went while nobody looked
  for (const auto& one : {gone, alive, unseen}) write_log(one, "main", 0);
  kept.take(gone);
  kept.sweep({alive.uid()});
  EXPECT_EQ(kept.all().size(), 1U);
  EXPECT_EQ(folders(), 2U);
  wanted = false;
  kept.sweep({alive.uid()});
  EXPECT_EQ(folders(), 1U);
}

}  // namespace
}  // namespace grapnel::local::kubelet
