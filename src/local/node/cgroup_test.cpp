#include "local/node/cgroup.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace grapnel::local {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const Limits kLimits{
    .cpu_millis = 1500, .cpu_request_millis = 500, .memory_bytes = 1 << 20, .processes = 10};

TEST(Cgroup, WhatVersionOneIsTold) {
  EXPECT_THAT(cgroup_settings("cpu", kLimits, false),
              ElementsAre(Pair("cpu.shares", "512"), Pair("cpu.cfs_period_us", "100000"),
                          Pair("cpu.cfs_quota_us", "150000")));
  EXPECT_THAT(cgroup_settings("memory", kLimits, false),
              ElementsAre(Pair("memory.limit_in_bytes", "1048576")));
  EXPECT_THAT(cgroup_settings("pids", kLimits, false), ElementsAre(Pair("pids.max", "10")));
}

TEST(Cgroup, WhatVersionTwoIsTold) {
  EXPECT_THAT(cgroup_settings("cpu", kLimits, true),
              ElementsAre(Pair("cpu.weight", "20"), Pair("cpu.max", "150000 100000")));
  EXPECT_THAT(cgroup_settings("memory", kLimits, true),
              ElementsAre(Pair("memory.max", "1048576"), Pair("memory.oom.group", "1")));
}

TEST(Cgroup, NoLimitWritesNothing) {
  for (const char* controller : {"cpu", "memory", "pids"}) {
    EXPECT_THAT(cgroup_settings(controller, {}, true), IsEmpty());
  }
}

// Plain directories in the place of the kernel's: what matters is where we go and what we write.
struct FakeTree : testing::Test {
  std::string root;
  void SetUp() override {
    char name[] = "/tmp/grapnel-cgroup-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root = name;
  }
  void TearDown() override { EXPECT_EQ(std::system(("rm -rf " + root).c_str()), 0); }
  void make(const std::string& path) const {
    ASSERT_EQ(std::system(("mkdir -p " + root + path).c_str()), 0);
  }
  void put(const std::string& path, const std::string& text) const {
    std::ofstream(root + path) << text;
  }
  std::string get(const std::string& path) const {
    std::ifstream file(root + path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(FakeTree, VersionOneIsUsedBelowOurOwnCgroup) {
  make("/memory/box/inner");
  make("/cpu");
  make("/box2");
  const std::string mounts = "30 1 0:1 / " + root + "/memory rw - cgroup cgroup rw,memory\n" +
                             "31 1 0:1 /box " + root + "/box2 rw - cgroup cgroup rw,pids\n" +
                             "32 1 0:1 / " + root + "/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
  const Cgroups found =
      Cgroups::find("g", mounts, "4:memory:/box/inner\n3:pids:/box\n2:cpu,cpuacct:/\n0::/\n");
  EXPECT_TRUE(found.can_limit("memory"));
  EXPECT_TRUE(found.can_limit("cpu"));
  EXPECT_TRUE(found.can_limit("pids"));
  struct stat info{};
  EXPECT_EQ(stat((root + "/memory/box/inner/g").c_str(), &info), 0);
  EXPECT_EQ(stat((root + "/box2/g").c_str(), &info), 0);
  EXPECT_EQ(stat((root + "/cpu/g").c_str(), &info), 0);
  const auto made = found.create("pod", "main", {});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->directories.size(), 3U);
  EXPECT_EQ(made->oom_file, root + "/memory/box/inner/g/pod/main/memory.oom_control");
  found.remove("pod");
  EXPECT_NE(stat((root + "/cpu/g/pod").c_str(), &info), 0);
  found.remove_all();
  EXPECT_NE(stat((root + "/cpu/g").c_str(), &info), 0);
}

TEST_F(FakeTree, WithoutCgroupsNothingCanBeLimitedAndNothingFails) {
  const Cgroups found = Cgroups::find("g", "", "");
  EXPECT_FALSE(found.can_limit("memory"));
  const auto made = found.create("pod", "main", kLimits);
  ASSERT_TRUE(made);
  EXPECT_THAT(made->join_files, IsEmpty());
}

TEST_F(FakeTree, VersionTwoGoesUpUntilControllersAreToBeHad) {
  make("/user/app/g");
  make("/user/g");
  put("/user/app/g/cgroup.controllers", "\n");
  put("/user/g/cgroup.controllers", "cpu memory pids\n");
  put("/user/g/cgroup.subtree_control", "");
  const Cgroups found =
      Cgroups::find("g", "30 1 0:1 / " + root + " rw - cgroup2 cgroup2 rw\n", "0::/user/app\n");
  EXPECT_TRUE(found.can_limit("memory"));
  EXPECT_TRUE(found.can_limit("pids"));
  EXPECT_NE(get("/user/g/cgroup.subtree_control").find("+pids"), std::string::npos);
}

}  // namespace
}  // namespace grapnel::local
