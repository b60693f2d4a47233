#include "local/kubelet/volumes.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "local/kubelet/pod_test.h"

namespace grapnel::local::kubelet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const NodeFacts kNode{.name = "laptop", .memory_bytes = 8LL << 30};

Sources sources() {
  Sources out;
  out.config_maps["settings"] = json(R"({"kind":"ConfigMap","data":{"a":"1","b":"2"}})");
  out.secrets["password"] = json(R"({"kind":"Secret","data":{"word":"c2VzYW1l"}})");
  out.volumes["data"] =
      json(R"({"spec":{"hostPath":{"path":"/claims/pvc-1","type":"DirectoryOrCreate"}}})");
  out.volumes["disk"] = json(R"({"spec":{"local":{"path":"/mnt/disk"}}})");
  out.volumes["remote"] = json(R"({"metadata":{"name":"nfs-1"},"spec":{"nfs":{"path":"/x"}}})");
  out.tokens[token_key(json("{}"))] = "token";
  return out;
}

Result<std::vector<Volume>> plan(std::string_view volume, std::string_view mounts = "[]") {
  static const Sources known = sources();
  const Pod pod = pod_of(fmt::format(
      R"({{"containers":[{{"name":"main","volumeMounts":{}}}],"volumes":[{}]}})", mounts, volume));
  return plan_volumes({.pod = &pod,
                       .sources = &known,
                       .node = &kNode,
                       .pod_address = "10.0.0.1",
                       .pod_directory = "/pod"});
}

Volume one(std::string_view volume, std::string_view mounts = "[]") {
  auto planned = plan(volume, mounts);
  EXPECT_TRUE(planned) << (planned ? "" : planned.error().message);
  return planned && planned->size() == 1 ? planned->front() : Volume{};
}

std::vector<std::string> files(const Volume& volume) {
  std::vector<std::string> out;
  for (const VolumeFile& f : volume.files) {
    out.push_back(fmt::format("{}={} {:o}", f.path, f.content, f.mode));
  }
  return out;
}

TEST(PlanVolumes, KnowsEachKind) {
  EXPECT_EQ(one(R"({"name":"v","emptyDir":{}})").source, "/pod/volumes/v");
  const Volume memory = one(R"({"name":"v","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}})");
  EXPECT_EQ(memory.kind, Volume::Kind::kMemory);
  EXPECT_EQ(one(R"({"name":"v","emptyDir":{"medium":"Memory"}})",
                R"([{"name":"v","mountPath":"/dev/shm"}])")
                .kind,
            Volume::Kind::kShm);
  EXPECT_EQ(one(R"({"name":"v","hostPath":{"path":"/x"}})").source, "/x");
  const Volume claimed = one(R"({"name":"v","persistentVolumeClaim":{"claimName":"data"}})");
  EXPECT_EQ(claimed.source, "/claims/pvc-1");
  EXPECT_EQ(claimed.kind, Volume::Kind::kDirectory) << "made when it is missing, for every user";
  const Volume disk = one(R"({"name":"v","persistentVolumeClaim":{"claimName":"disk"}})");
  EXPECT_EQ(disk.source, "/mnt/disk");
  EXPECT_EQ(disk.kind, Volume::Kind::kHost);
}

TEST(MemoryDirectories, AreOfTheSizeAsked) {
  const Pod pod = pod_of(R"({"containers":[{"name":"main","volumeMounts":[
      {"name":"shm","mountPath":"/dev/shm"}]}],"volumes":[
      {"name":"small","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}},
      {"name":"half","emptyDir":{"medium":"Memory"}},
      {"name":"shm","emptyDir":{"medium":"Memory"}},
      {"name":"disk","emptyDir":{}}]})");
  const auto found = memory_directories(pod, kNode);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].path, "volumes/small");
  EXPECT_EQ(found[0].bytes, 1UL << 20);
  EXPECT_EQ(found[1].bytes, 4UL << 30);
}

TEST(PlanVolumes, FillsFiles) {
  EXPECT_THAT(files(one(R"({"name":"v","configMap":{"name":"settings"}})")),
              ElementsAre("a=1 644", "b=2 644"));
  EXPECT_THAT(files(one(R"({"name":"v","configMap":{"name":"settings","defaultMode":256,
                  "items":[{"key":"b","path":"x/y","mode":493}]}})")),
              ElementsAre("x/y=2 755"));
  EXPECT_THAT(files(one(R"({"name":"v","secret":{"secretName":"password","defaultMode":256}})")),
              ElementsAre("word=sesame 400"));
  EXPECT_THAT(files(one(R"({"name":"v","secret":{"secretName":"none","optional":true}})")),
              ElementsAre());
  EXPECT_THAT(files(one(R"({"name":"v","downwardAPI":{"items":[
                  {"path":"name","fieldRef":{"fieldPath":"metadata.name"}}]}})")),
              ElementsAre("name=p 644"));
  EXPECT_THAT(files(one(R"({"name":"v","projected":{"sources":[
                  {"configMap":{"name":"settings","items":[{"key":"a","path":"a"}]}},
                  {"secret":{"name":"password"}},
                  {"serviceAccountToken":{"path":"token"}},
                  {"downwardAPI":{"items":[{"path":"ns","fieldRef":{"fieldPath":"metadata.namespace"}}]}}
                ]}})")),
              ElementsAre("a=1 644", "word=sesame 644", "token=token 644", "ns=ns 644"));
}

TEST(PlanVolumes, NamesWhatIsMissing) {
  const auto why = [](std::string_view volume) {
    auto planned = plan(volume);
    return planned ? "no error" : planned.error().message;
  };
  EXPECT_EQ(why(R"({"name":"v","configMap":{"name":"none"}})"),
            "MountVolume.SetUp failed for volume \"v\" : configmap \"none\" not found");
  EXPECT_THAT(
      why(R"({"name":"v","secret":{"secretName":"password","items":[{"key":"x","path":"y"}]}})"),
      HasSubstr("non-existent secret key: x"));
  EXPECT_THAT(
      why(R"({"name":"v","configMap":{"name":"settings","items":[{"key":"a","path":"../x"}]}})"),
      HasSubstr("invalid path"));
  EXPECT_THAT(why(R"({"name":"v","persistentVolumeClaim":{"claimName":"x"}})"),
              HasSubstr("persistentvolumeclaim \"x\" not found"));
  EXPECT_THAT(why(R"({"name":"v","persistentVolumeClaim":{"claimName":"remote"}})"),
              HasSubstr("PersistentVolume \"nfs-1\": only hostPath and local"));
  EXPECT_THAT(why(R"({"name":"v","iscsi":{}})"), HasSubstr("not supported here"));
}

TEST(MountsOf, AreOuterOnesFirst) {
  const Json spec = json(R"json({"name":"main","volumeMounts":[
      {"name":"d","mountPath":"/a/b","subPath":"s"},
      {"name":"d","mountPath":"/a","readOnly":true},
      {"name":"m","mountPath":"/m","subPath":"inner"},
      {"name":"f","mountPath":"/f"},
      {"name":"d","mountPath":"/e","subPathExpr":"$(NAME)"}]})json");
  const std::vector<Volume> volumes{
      {.name = "d", .source = "/d"},
      {.name = "m", .kind = Volume::Kind::kMemory, .source = "/memory"},
      {.name = "f", .kind = Volume::Kind::kFiles, .source = "/files"}};
  auto mounts = mounts_of({.spec = &spec}, volumes, {.known = {{"NAME", "n"}}});
  ASSERT_TRUE(mounts) << mounts.error().message;
  std::vector<std::string> rows;
  for (const Mount& m : mounts->mounts) {
    rows.push_back(fmt::format("{} {}{}", m.path, m.source, m.read_only ? " ro" : ""));
  }
  EXPECT_THAT(rows,
              ElementsAre("/a /d ro", "/a/b /d/s", "/e /d/n", "/f /files ro", "/m /memory/inner"));
  EXPECT_THAT(mounts->directories, ElementsAre("/d/s", "/d/n"));
  EXPECT_TRUE(mounts->mounts.back().make_source);
}

TEST(MountsOf, StayInsideTheVolume) {
  const Json spec =
      json(R"({"name":"main","volumeMounts":[{"name":"d","mountPath":"/a","subPath":"../x"}]})");
  EXPECT_FALSE(mounts_of({.spec = &spec}, {{.name = "d", .source = "/d"}}, {}));
}

struct MakeVolumes : testing::Test {
  std::string directory;
  void SetUp() override {
    char name[] = "/tmp/grapnel-volumes-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  std::string content(const std::string& path) const {
    auto text = read_file(directory + "/" + path);
    return text ? *text : "none";
  }
  void make(std::vector<VolumeFile> wanted) const {
    auto made = make_volumes({{.name = "v",
                               .kind = Volume::Kind::kFiles,
                               .source = directory + "/v",
                               .files = std::move(wanted)}});
    ASSERT_TRUE(made) << made.error().message;
  }
};

TEST_F(MakeVolumes, ExchangesFilesAsAWhole) {
  make({{.path = "a", .content = "1"}, {.path = "x/y", .content = "2", .mode = 0600}});
  EXPECT_EQ(content("v/a"), "1");
  EXPECT_EQ(content("v/x/y"), "2");
  struct stat info{};
  ASSERT_EQ(stat((directory + "/v/x/y").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  const auto first = std::filesystem::read_symlink(directory + "/v/..data");

  make({{.path = "a", .content = "1"}, {.path = "x/y", .content = "2", .mode = 0600}});
  EXPECT_EQ(std::filesystem::read_symlink(directory + "/v/..data"), first);  // nothing to do

  make({{.path = "a", .content = "changed"}, {.path = "z", .content = "new"}});
  EXPECT_EQ(content("v/a"), "changed");
  EXPECT_EQ(content("v/z"), "new");
  EXPECT_EQ(content("v/x/y"), "none");
  EXPECT_FALSE(std::filesystem::exists(directory + "/v/" + first.string()));
  EXPECT_FALSE(std::filesystem::is_symlink(directory + "/v/x"));
}

TEST_F(MakeVolumes, GivesADirectoryToItsGroup) {
  ASSERT_TRUE(make_volumes({{.name = "v", .source = directory + "/v", .group = getegid()}}));
  struct stat info{};
  ASSERT_EQ(stat((directory + "/v").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 02777U);
  EXPECT_EQ(info.st_gid, getegid());
}

TEST_F(MakeVolumes, ChecksHostPaths) {
  const auto check = [&](std::string path, std::string type) {
    return make_volumes(
        {{.name = "v", .kind = Volume::Kind::kHost, .source = path, .host_type = type}});
  };
  EXPECT_TRUE(check(directory, "Directory"));
  EXPECT_FALSE(check(directory, "File"));
  EXPECT_FALSE(check(directory + "/none", ""));
  EXPECT_TRUE(check(directory + "/made", "DirectoryOrCreate"));
  EXPECT_TRUE(std::filesystem::is_directory(directory + "/made"));
  EXPECT_TRUE(check(directory + "/file", "FileOrCreate"));
  EXPECT_TRUE(std::filesystem::is_regular_file(directory + "/file"));
}

}  // namespace
}  // namespace grapnel::local::kubelet
