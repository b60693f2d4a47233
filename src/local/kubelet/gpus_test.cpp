#include "local/kubelet/gpus.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace grapnel::local::kubelet {
namespace {

using testing::ElementsAre;

struct GpusTest : testing::Test {
  std::string directory;
  GpuFiles files;

  void SetUp() override {
    char name[] = "/tmp/grapnel-gpus-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    files = {.devices = directory + "/dev", .driver = directory + "/driver"};
    for (const char* folder : {"/dev", "/driver/gpus/0000:01:00.0", "/a", "/b"}) {
      std::filesystem::create_directories(directory + folder);
    }
    for (const char* device :
         {"nvidia1", "nvidia0", "nvidia10", "nvidiactl", "nvidia-uvm", "null"}) {
      std::ofstream(files.devices + "/" + device) << "";
    }
    std::ofstream(files.driver + "/gpus/0000:01:00.0/information")
        << "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 1\nGPU UUID: \t GPU-7\n"
           "Device Minor: \t 1\n";
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
};

TEST_F(GpusTest, AreFoundByTheirDeviceFiles) {
  const auto found = find_gpus(files);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1], (Gpu{.number = 1,
                           .device = files.devices + "/nvidia1",
                           .product = "NVIDIA-A100-SXM4-40GB",
                           .uuid = "GPU-7"}));
  EXPECT_EQ(found[2].number, 10);
  EXPECT_TRUE(find_gpus({.devices = directory + "/none"}).empty());
}

TEST_F(GpusTest, BelongToOneContainerAtATime) {
  Gpus gpus(files);
  const auto a = gpus.take("a", directory + "/a", "main", 2);
  ASSERT_TRUE(a) << a.error().message;
  EXPECT_THAT(a->devices, ElementsAre(files.devices + "/nvidiactl", files.devices + "/nvidia-uvm",
                                      files.devices + "/nvidia0", files.devices + "/nvidia1"));
  EXPECT_THAT(a->environment,
              ElementsAre("CUDA_VISIBLE_DEVICES=0,GPU-7", "NVIDIA_VISIBLE_DEVICES=0,GPU-7"));
  EXPECT_EQ(gpus.take("a", directory + "/a", "main", 2)->devices, a->devices);
  EXPECT_FALSE(gpus.take("b", directory + "/b", "main", 2));
  EXPECT_EQ(gpus.take("b", directory + "/b", "main", 1)->devices.back(),
            files.devices + "/nvidia10");
  gpus.give_back("a");
  EXPECT_EQ(gpus.take("b", directory + "/b", "side", 1)->devices.back(),
            files.devices + "/nvidia0");
}

TEST_F(GpusTest, AreRememberedByTheNextKubelet) {
  Gpus before(files);
  ASSERT_TRUE(before.take("a", directory + "/a", "main", 1));
  ASSERT_TRUE(before.take("a", directory + "/a", "side", 1));
  Gpus after(files);
  after.recover("a", directory + "/a");
  after.recover("b", directory + "/b");
  EXPECT_FALSE(after.take("b", directory + "/b", "main", 2));
  EXPECT_EQ(after.take("a", directory + "/a", "side", 1)->devices.back(),
            files.devices + "/nvidia1");
}

}  // namespace
}  // namespace grapnel::local::kubelet
