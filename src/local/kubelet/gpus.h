// The machine's GPUs, and which container has which. A container that asks for none sees none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace grapnel::local::kubelet {

struct Gpu {
  int number = 0;  // of its device file
  std::string device;
  std::string product;  // "NVIDIA-A100-SXM4-40GB"; "" when the driver does not say
  std::string uuid;     // likewise
  bool operator==(const Gpu&) const = default;
};

struct GpuFiles {
  std::string devices = "/dev";
  std::string driver = "/proc/driver/nvidia";
};

// By their device files: nvidia0, nvidia1 …
std::vector<Gpu> find_gpus(const GpuFiles& files);

// What a container with GPUs gets in addition to its arguments.
struct GpuShare {
  std::vector<std::string> devices;
  std::vector<std::string> environment;  // NAME=value
};

// Which container has which GPU. This is written into the pod's own directory, so that the next
// kubelet knows it, too, and it disappears with the pod.
class Gpus {
 public:
  Gpus() = default;
  explicit Gpus(const GpuFiles& files);

  const std::vector<Gpu>& all() const { return all_; }
  // A container that has GPUs already gets the same again.
  Result<GpuShare> take(const std::string& pod, const std::string& pod_directory,
                        const std::string& container, size_t count);
  void give_back(const std::string& pod) { held_.erase(pod); }
  // Learns what an earlier kubelet gave.
  void recover(const std::string& pod, const std::string& pod_directory);

 private:
  using Held = std::map<std::string, std::vector<int>>;  // by container
  GpuShare share(const std::vector<int>& numbers) const;
  bool is_free(int number) const;

  std::vector<Gpu> all_;
  std::vector<std::string> common_;  // devices that every user of a GPU needs
  std::map<std::string, Held> held_;
};

}  // namespace grapnel::local::kubelet
