#include "local/kubelet/node_object.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/files.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "local/kubelet/pod.h"

namespace grapnel::local::kubelet {
namespace {

constexpr std::string_view kVersion = "v1.34.0+grapnel";

std::string line_of(const std::string& path) {
  const auto text = read_file(path);
  return text ? std::string(trim(*text)) : std::string();
}

std::string os_image() {
  const auto text = read_file("/etc/os-release");
  if (!text) return "Linux";
  for (std::string_view line : split(*text, '\n')) {
    constexpr std::string_view kName = "PRETTY_NAME=";
    if (!line.starts_with(kName)) continue;
    line.remove_prefix(kName.size());
    if (line.size() >= 2 && line.front() == '"') line = line.substr(1, line.size() - 2);
    return std::string(line);
  }
  return "Linux";
}

std::string architecture_of(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return std::string(machine);
}

Json resources(const NodeDescription& node) {
  const auto times = [&](int64_t amount) {
    return static_cast<int64_t>(static_cast<double>(amount) * node.oversubscribe);
  };
  JsonObject out{
      {"cpu", Quantity::from_milli(times(node.machine.cpus * 1000)).text()},
      {"memory", fmt::format("{}Ki", times(node.machine.memory_bytes / 1024))},
      {"ephemeral-storage", fmt::format("{}Ki", node.machine.disk_bytes / 1024)},
      {"pods", std::to_string(times(node.max_pods))},
  };
  // A GPU belongs to one program, so oversubscription does not apply to GPUs.
  if (!node.gpus.empty()) out["nvidia.com/gpu"] = std::to_string(node.gpus.size());
  return out;
}

Json condition(const Json& before, std::string_view type, bool is_true, std::string_view reason,
               std::string_view message, Time now) {
  const std::string_view status = is_true ? "True" : "False";
  std::string since = format_time(now);
  for (const Json& known : elements(find(before, "conditions"))) {
    if (string_or(find(known, "type")) == type && string_or(find(known, "status")) == status) {
      since = string_or(find(known, "lastTransitionTime"), since);
    }
  }
  return JsonObject{{"type", type},
                    {"status", status},
                    {"reason", reason},
                    {"message", message},
                    {"lastHeartbeatTime", format_time(now)},
                    {"lastTransitionTime", since}};
}

}  // namespace

JsonObject node_labels(const NodeDescription& node) {
  JsonObject out{{"kubernetes.io/hostname", node.name},
                 {"kubernetes.io/os", "linux"},
                 {"kubernetes.io/arch", node.machine.architecture},
                 {"beta.kubernetes.io/os", "linux"},
                 {"beta.kubernetes.io/arch", node.machine.architecture}};
  if (node.gpus.empty()) return out;
  out["nvidia.com/gpu.present"] = "true";
  out["nvidia.com/gpu.count"] = std::to_string(node.gpus.size());
  const std::string& product = node.gpus.front().product;
  if (!product.empty()) out["nvidia.com/gpu.product"] = product;
  return out;
}

Machine this_machine(const std::string& state_directory) {
  Machine out;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  out.cpus = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed)
                                                                 : sysconf(_SC_NPROCESSORS_ONLN);
  out.memory_bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  struct statvfs disk{};
  if (statvfs(state_directory.c_str(), &disk) == 0) {
    out.disk_bytes = static_cast<int64_t>(disk.f_blocks * disk.f_frsize);
  }
  utsname system{};
  if (uname(&system) == 0) {
    out.architecture = architecture_of(system.machine);
    out.kernel = system.release;
  }
  out.os_image = os_image();
  out.machine_id = line_of("/etc/machine-id");
  out.boot_id = line_of("/proc/sys/kernel/random/boot_id");
  return out;
}

Json node_object(const NodeDescription& node) {
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Node"},
                    {"metadata", JsonObject{{"name", node.name}, {"labels", node_labels(node)}}},
                    {"spec", JsonObject{{"podCIDR", node.pod_network},
                                        {"podCIDRs", JsonArray{node.pod_network}}}}};
}

Json node_status(const NodeDescription& node, const Json& before, bool is_ready, Time now) {
  std::string words = is_ready ? "kubelet is posting ready status" : "the kubelet has stopped";
  if (is_ready && !node.shortcomings.empty()) words += "; " + join(node.shortcomings, "; ");
  return JsonObject{
      {"capacity", resources(node)},
      {"allocatable", resources(node)},
      {"addresses", JsonArray{JsonObject{{"type", "InternalIP"}, {"address", node.address}},
                              JsonObject{{"type", "Hostname"}, {"address", node.name}}}},
      {"conditions",
       JsonArray{condition(before, "MemoryPressure", false, "KubeletHasSufficientMemory",
                           "kubelet has sufficient memory available", now),
                 condition(before, "DiskPressure", false, "KubeletHasNoDiskPressure",
                           "kubelet has no disk pressure", now),
                 condition(before, "PIDPressure", false, "KubeletHasSufficientPID",
                           "kubelet has sufficient PID available", now),
                 condition(before, "Ready", is_ready, is_ready ? "KubeletReady" : "KubeletStopped",
                           words, now)}},
      {"nodeInfo", JsonObject{{"architecture", node.machine.architecture},
                              {"bootID", node.machine.boot_id},
                              {"containerRuntimeVersion", "grapnel://0.1.0"},
                              {"kernelVersion", node.machine.kernel},
                              {"kubeProxyVersion", ""},
                              {"kubeletVersion", kVersion},
                              {"machineID", node.machine.machine_id},
                              {"operatingSystem", "linux"},
                              {"osImage", node.machine.os_image},
                              {"systemUUID", node.machine.machine_id}}}};
}

Json node_lease(const std::string& node, Time now) {
  return JsonObject{{"apiVersion", "coordination.k8s.io/v1"},
                    {"kind", "Lease"},
                    {"metadata", JsonObject{{"name", node}, {"namespace", "kube-node-lease"}}},
                    {"spec", JsonObject{{"holderIdentity", node},
                                        {"leaseDurationSeconds", 40},
                                        {"renewTime", format_micro_time(now)}}}};
}

}  // namespace grapnel::local::kubelet
