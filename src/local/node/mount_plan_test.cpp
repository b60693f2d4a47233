#include "local/node/mount_plan.h"

#include <gmock/gmock.h>
#include <sys/mount.h>

#include <algorithm>
#include <map>

namespace grapnel::local {
namespace {

using shim::MountKind;
using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;

constexpr auto kDirectory = HostEntry::Kind::kDirectory;
constexpr auto kFile = HostEntry::Kind::kFile;
constexpr auto kSymlink = HostEntry::Kind::kSymlink;

HostFiles host(std::vector<HostMount> mounts, std::vector<std::string> existing = {}) {
  const std::map<std::string, std::vector<HostEntry>> tree = {
      {"/",
       {{.name = "bin", .kind = kSymlink, .link = "usr/bin"},
        {.name = "dev", .kind = kDirectory},
        {.name = "home", .kind = kDirectory},
        {.name = "proc", .kind = kDirectory},
        {.name = "root", .kind = kDirectory, .readable = false},
        {.name = "swap.img", .kind = kFile, .readable = false},
        {.name = "tmp", .kind = kDirectory},
        {.name = "usr", .kind = kDirectory}}},
      {"/home",
       {{.name = "ann", .kind = kDirectory},
        {.name = "bob", .kind = kDirectory},
        {.name = "note.txt", .kind = kFile}}},
      {"/usr", {{.name = "bin", .kind = kDirectory}, {.name = "share", .kind = kDirectory}}}};
  return {.mounts = std::move(mounts),
          .list =
              [tree](const std::string& directory) {
                const auto found = tree.find(directory);
                return found == tree.end() ? std::vector<HostEntry>{} : found->second;
              },
          .exists =
              [existing = std::move(existing)](const std::string& path) {
                return std::ranges::find(existing, path) != existing.end();
              }};
}

RootPlan plan(Isolation isolation, const HostFiles& files, const ContainerSpec& container = {}) {
  return plan_root({.isolation = isolation,
                    .container_directory = "/state/pods/p/c/main/0",
                    .pod_directory = "/state/pods/p",
                    .state_directory = "/state"},
                   container, files);
}

// "overlay /usr", in order, for the steps of one kind.
std::vector<std::string> targets(const RootPlan& plan, MountKind kind) {
  std::vector<std::string> found;
  for (const MountStep& step : plan.steps) {
    if (step.kind == kind) found.push_back(step.target);
  }
  return found;
}

TEST(MountPlan, RootLaysOneLayerOverAllAndOneOverEachDisk) {
  const RootPlan made = plan(Isolation::kRoot, host({{"/", "ext4"},
                                                     {"/proc", "proc"},
                                                     {"/dev/shm", "tmpfs"},
                                                     {"/home", "xfs"},
                                                     {"/home", "xfs"},
                                                     {"/run/user/0", "tmpfs"},
                                                     {"/tmp/disk", "ext4"},
                                                     {"/state/disk", "ext4"},
                                                     {"/snap/core", "squashfs"}}));
  EXPECT_THAT(targets(made, MountKind::kOverlay), ElementsAre("/", "/home", "/snap/core"));
  EXPECT_EQ(made.steps[0].target, "/");
  EXPECT_EQ(made.root, "/state/pods/p/c/main/0/root");
}

TEST(MountPlan, WithoutRootEachFolderHasItsLayer) {
  const RootPlan made = plan(Isolation::kUser, host({{"/", "ext4"}, {"/proc", "proc"}}));
  EXPECT_THAT(targets(made, MountKind::kOverlay), ElementsAre("/home", "/usr"));
  EXPECT_THAT(targets(made, MountKind::kSymlink), Contains("/bin"));
  EXPECT_THAT(targets(made, MountKind::kDirectory), ElementsAre("/root"));
  EXPECT_THAT(targets(made, MountKind::kBind), Not(Contains("/swap.img")));
}

TEST(MountPlan, WithoutRootAFolderWithMountsBelowIsFilledPieceByPiece) {
  const RootPlan made = plan(Isolation::kUser, host({{"/", "ext4"}, {"/home/bob", "nfs"}}));
  EXPECT_THAT(targets(made, MountKind::kOverlay), ElementsAre("/home/ann", "/home/bob", "/usr"));
  EXPECT_THAT(targets(made, MountKind::kDirectory), ElementsAre("/home", "/root"));
  EXPECT_THAT(targets(made, MountKind::kBind), Contains("/home/note.txt"));
}

TEST(MountPlan, WithoutRootTheWayToANewMountPointIsMadeByUs) {
  const ContainerSpec container{.mounts = {{.source = "/v", .path = "/usr/share/data"},
                                           {.source = "/v", .path = "/home/new"},
                                           {.source = "/v", .path = "/home/ann/there"}}};
  const RootPlan made = plan(Isolation::kUser, host({}, {"/home/ann/there"}), container);
  EXPECT_THAT(targets(made, MountKind::kOverlay), ElementsAre("/home", "/usr/bin", "/usr/share"));
  EXPECT_THAT(targets(made, MountKind::kDirectory), ElementsAre("/root", "/usr"));
}

TEST(MountPlan, MountsInsideOthersComeAfterThem) {
  const ContainerSpec container{
      .mounts = {{.source = "/v/b", .path = "/a/b/c"},
                 {.source = "/v/a", .path = "/a", .read_only = true},
                 {.source = "/v/m", .path = "/m", .make_source = true},
                 {.kind = Mount::Kind::kPrivate, .source = "/srv/code", .path = "/code"}}};
  const RootPlan made = plan(Isolation::kRoot, host({}), container);
  const auto last = made.steps.end() - 4;
  EXPECT_EQ(last[0], (MountStep{.kind = MountKind::kBind,
                                .target = "/a",
                                .source = "/v/a",
                                .flags = MS_REC | MS_RDONLY}));
  EXPECT_TRUE(last[1].make_source);
  EXPECT_EQ(last[2].kind, MountKind::kOverlay);
  EXPECT_EQ(last[2].source, "/srv/code");
  EXPECT_EQ(last[3].target, "/a/b/c");
}

TEST(MountPlan, AReadOnlyRootLeavesVolumesWritable) {
  const ContainerSpec container{.mounts = {{.source = "/v", .path = "/data"}},
                                .read_only_root = true};
  const RootPlan made = plan(Isolation::kUser, host({}), container);
  EXPECT_THAT(targets(made, MountKind::kReadOnly),
              ElementsAre("/", "/home", "/usr", "/tmp", "/var/tmp", "/run"));
}

TEST(MountPlan, EveryContainerHasItsOwnSystemDirectories) {
  for (const Isolation isolation : {Isolation::kRoot, Isolation::kUser}) {
    const RootPlan made = plan(isolation, host({}));
    EXPECT_THAT(targets(made, MountKind::kFileSystem),
                IsSupersetOf({"/proc", "/sys", "/dev", "/dev/pts", "/state"}));
    EXPECT_THAT(targets(made, MountKind::kBind),
                IsSupersetOf({"/tmp", "/run", "/dev/shm", "/etc/hosts", "/etc/resolv.conf"}));
  }
}

TEST(MountPlan, AWorkingDirectoryInTmpIsThere) {
  HostFiles files = host({});
  files.exists = [](const std::string& path) { return path == "/tmp/mine"; };
  for (const Isolation isolation : {Isolation::kRoot, Isolation::kUser}) {
    EXPECT_THAT(targets(plan(isolation, files, {.directory = "/tmp/mine"}), MountKind::kOverlay),
                testing::Contains("/tmp/mine"));
    for (const char* directory : {"/tmp", "/tmp/gone", "/home/mine"}) {
      EXPECT_THAT(targets(plan(isolation, files, {.directory = directory}), MountKind::kOverlay),
                  testing::Not(testing::Contains(directory)));
    }
  }
}

TEST(MountInfo, IsReadWithItsEscapes) {
  const auto mounts = parse_mountinfo(
      "22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
      "31 28 8:1 / /mnt/a\\040b rw - ext4 /dev/sda1 rw\n"
      "nonsense\n");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[0].type, "sysfs");
  EXPECT_EQ(mounts[1].path, "/mnt/a b");
}

}  // namespace
}  // namespace grapnel::local
