#include "local/kubelet/gpus.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/files.h"
#include "base/strings.h"
#include "local/node/sandbox.h"

namespace grapnel::local::kubelet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDevice = "nvidia";
constexpr std::string_view kNote = "/gpus";

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "Model: \t\t NVIDIA A100" and the like, one for each line.
std::string value_of(std::string_view text, std::string_view name) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with(":")) {
      return std::string(trim(line.substr(name.size() + 1)));
    }
  }
  return "";
}

// As a label's value may be.
std::string label(std::string text) {
  const auto is_fine = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  std::ranges::replace_if(text, std::not_fn(is_fine), '-');
  return text;
}

void ask_driver(const std::string& driver, std::vector<Gpu>& gpus) {
  std::error_code error;
  for (fs::directory_iterator at(driver + "/gpus", error), end; !error && at != end;
       at.increment(error)) {
    const auto text = read_file(at->path().string() + "/information");
    if (!text) continue;
    const auto minor = number_in(value_of(*text, "Device Minor"));
    for (Gpu& gpu : gpus) {
      if (gpu.number != minor) continue;
      gpu.product = label(value_of(*text, "Model"));
      gpu.uuid = value_of(*text, "GPU UUID");
    }
  }
}

}  // namespace

std::vector<Gpu> find_gpus(const GpuFiles& files) {
  std::vector<Gpu> out;
  std::error_code error;
  for (fs::directory_iterator at(files.devices, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kDevice)) continue;
    if (const auto number = number_in(std::string_view(name).substr(kDevice.size()))) {
      out.push_back({.number = *number, .device = at->path().string()});
    }
  }
  std::ranges::sort(out, {}, &Gpu::number);
  if (!out.empty()) ask_driver(files.driver, out);
  return out;
}

Gpus::Gpus(const GpuFiles& files) : all_(find_gpus(files)) {
  for (const char* name : {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}) {
    const std::string path = files.devices + "/" + name;
    struct stat info{};
    if (!all_.empty() && stat(path.c_str(), &info) == 0) common_.push_back(path);
  }
}

bool Gpus::is_free(int number) const {
  return std::ranges::none_of(held_, [&](const auto& pod) {
    return std::ranges::any_of(pod.second, [&](const auto& container) {
      return std::ranges::find(container.second, number) != container.second.end();
    });
  });
}

GpuShare Gpus::share(const std::vector<int>& numbers) const {
  GpuShare out{.devices = common_, .environment = {}};
  std::vector<std::string> names;
  for (const Gpu& gpu : all_) {
    if (std::ranges::find(numbers, gpu.number) == numbers.end()) continue;
    out.devices.push_back(gpu.device);
    names.push_back(gpu.uuid.empty() ? std::to_string(gpu.number) : gpu.uuid);
  }
  out.environment = {"CUDA_VISIBLE_DEVICES=" + join(names, ","),
                     "NVIDIA_VISIBLE_DEVICES=" + join(names, ",")};
  return out;
}

Result<GpuShare> Gpus::take(const std::string& pod, const std::string& pod_directory,
                            const std::string& container, size_t count) {
  Held& held = held_[pod];
  if (const auto known = held.find(container); known != held.end()) return share(known->second);
  std::vector<int> numbers;
  for (const Gpu& gpu : all_) {
    if (numbers.size() < count && is_free(gpu.number)) numbers.push_back(gpu.number);
  }
  if (numbers.size() < count) {
    return fail(Reason::kSystem, "{} GPUs are asked for, and {} are free", count, numbers.size());
  }
  held[container] = numbers;
  std::string note;
  for (const auto& [name, theirs] : held) {
    for (const int number : theirs) note += fmt::format("{} {}\n", name, number);
  }
  if (auto written = write_file(pod_directory + std::string(kNote), note, 0600); !written) {
    return fail(written.error());
  }
  return share(numbers);
}

void Gpus::recover(const std::string& pod, const std::string& pod_directory) {
  const auto note = read_file(pod_directory + std::string(kNote));
  if (!note) return;
  for (const std::string_view line : split(*note, '\n')) {
    const auto parts = split(line, ' ');
    if (parts.size() != 2) continue;
    if (const auto number = number_in(parts[1])) {
      held_[pod][std::string(parts[0])].push_back(*number);
    }
  }
}

}  // namespace grapnel::local::kubelet
