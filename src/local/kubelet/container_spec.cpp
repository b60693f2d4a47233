#include "local/kubelet/container_spec.h"

#include <array>

#include "base/quantity.h"
#include "base/strings.h"
#include "local/node/capabilities.h"

namespace grapnel::local::kubelet {
namespace {

constexpr std::array<std::string_view, 41> kCapabilities{"CHOWN",
                                                         "DAC_OVERRIDE",
                                                         "DAC_READ_SEARCH",
                                                         "FOWNER",
                                                         "FSETID",
                                                         "KILL",
                                                         "SETGID",
                                                         "SETUID",
                                                         "SETPCAP",
                                                         "LINUX_IMMUTABLE",
                                                         "NET_BIND_SERVICE",
                                                         "NET_BROADCAST",
                                                         "NET_ADMIN",
                                                         "NET_RAW",
                                                         "IPC_LOCK",
                                                         "IPC_OWNER",
                                                         "SYS_MODULE",
                                                         "SYS_RAWIO",
                                                         "SYS_CHROOT",
                                                         "SYS_PTRACE",
                                                         "SYS_PACCT",
                                                         "SYS_ADMIN",
                                                         "SYS_BOOT",
                                                         "SYS_NICE",
                                                         "SYS_RESOURCE",
                                                         "SYS_TIME",
                                                         "SYS_TTY_CONFIG",
                                                         "MKNOD",
                                                         "LEASE",
                                                         "AUDIT_WRITE",
                                                         "AUDIT_CONTROL",
                                                         "SETFCAP",
                                                         "MAC_OVERRIDE",
                                                         "MAC_ADMIN",
                                                         "SYSLOG",
                                                         "WAKE_ALARM",
                                                         "BLOCK_SUSPEND",
                                                         "AUDIT_READ",
                                                         "PERFMON",
                                                         "BPF",
                                                         "CHECKPOINT_RESTORE"};

Result<std::vector<std::string>> arguments_of(const ContainerInput& in,
                                              const ContainerEnvironment& environment) {
  std::vector<std::string> out;
  for (const char* list : {"command", "args"}) {
    for (const Json& part : elements(find(*in.container.spec, list))) {
      out.push_back(
          expand(string_or(&part), [&](std::string_view n) { return environment.get_known(n); }));
    }
    if (out.empty()) {
      return fail(Reason::kInvalid,
                  "no command specified: images are not pulled on this node, the host is the "
                  "image, so there is no entrypoint to start; give container \"{}\" a command",
                  in.container.name());
    }
  }
  return out;
}

// Threads count, too. This is far more than a training process needs, and far less than a machine
// can have.
constexpr uint64_t kMostProcesses = 4096;

Limits limits_of(const Container& container) {
  const auto amount = [&](std::string_view list,
                          std::string_view resource) -> std::optional<Quantity> {
    const Json* value = at(*container.spec, "resources", list, resource);
    if (value == nullptr) return std::nullopt;
    auto parsed =
        Quantity::parse(value->is_string() ? string_or(value) : std::string_view(to_text(*value)));
    if (!parsed || parsed->is_zero()) return std::nullopt;
    return parsed;
  };
  Limits out;
  if (const auto cpu = amount("limits", "cpu")) out.cpu_millis = cpu->milli();
  if (const auto cpu = amount("requests", "cpu")) out.cpu_request_millis = cpu->milli();
  if (const auto memory = amount("limits", "memory")) {
    out.memory_bytes = static_cast<uint64_t>(memory->units());
  }
  out.processes = kMostProcesses;
  return out;
}

uint64_t mask_of(const Json* names) {
  uint64_t mask = 0;
  for (const Json& name : elements(names)) mask |= capability_mask(string_or(&name)).value_or(0);
  return mask;
}

// The container's own setting, or the pod's.
const Json* security(const ContainerInput& in, std::string_view field) {
  if (const Json* own = at(*in.container.spec, "securityContext", field)) return own;
  return at(in.pod->spec(), "securityContext", field);
}

void set_security(const ContainerInput& in, ContainerSpec& out) {
  if (in.node->can_change_user) {
    const auto id = [](const Json* value) -> std::optional<uint32_t> {
      if (value == nullptr) return std::nullopt;
      return static_cast<uint32_t>(int_or(value));
    };
    out.user = id(security(in, "runAsUser"));
    out.group = id(security(in, "runAsGroup"));
    for (const Json& group : elements(security(in, "supplementalGroups"))) {
      out.extra_groups.push_back(static_cast<uint32_t>(int_or(&group)));
    }
    if (const auto group = id(security(in, "fsGroup"))) out.extra_groups.push_back(*group);
  }
  const Json* own = find(*in.container.spec, "securityContext");
  if (own == nullptr) return;
  out.privileged = bool_or(find(*own, "privileged"));
  out.read_only_root = bool_or(find(*own, "readOnlyRootFilesystem"));
  out.no_new_privileges = !bool_or(find(*own, "allowPrivilegeEscalation"), true);
  if (const Json* capabilities = find(*own, "capabilities")) {
    const uint64_t kept = kDefaultCapabilities & ~mask_of(find(*capabilities, "drop"));
    out.capabilities = kept | mask_of(find(*capabilities, "add"));
  }
}

Resolver resolver_of(const Pod& pod) {
  Resolver out{.is_own = string_or(find(pod.spec(), "dnsPolicy")) == "None"};
  const auto texts = [&](std::string_view field) {
    std::vector<std::string> found;
    for (const Json& text : elements(at(pod.spec(), "dnsConfig", field))) {
      found.emplace_back(string_or(&text));
    }
    return found;
  };
  out.servers = texts("nameservers");
  out.searches = texts("searches");
  for (const Json& option : elements(at(pod.spec(), "dnsConfig", "options"))) {
    out.options.emplace_back(string_or(find(option, "name")), string_or(find(option, "value")));
  }
  return out;
}

}  // namespace

Result<ContainerToRun> container_to_run(const ContainerInput& in) {
  auto environment = environment_of({.pod = in.pod,
                                     .container = in.container,
                                     .sources = in.sources,
                                     .node = in.node,
                                     .pod_address = in.pod_address,
                                     .services = in.services});
  if (!environment) return fail(environment.error());
  auto arguments = arguments_of(in, *environment);
  if (!arguments) return fail(arguments.error());
  auto mounts = mounts_of(in.container, *in.volumes, *environment);
  if (!mounts) return fail(mounts.error());

  ContainerSpec out{.name = std::string(in.container.name()),
                    .attempt = in.attempt,
                    .arguments = std::move(*arguments),
                    .mounts = std::move(mounts->mounts),
                    .limits = limits_of(in.container),
                    .log_path = in.log_path};
  for (const auto& [name, value] : environment->all) out.environment.push_back(name + "=" + value);
  const auto directory = string_or(find(*in.container.spec, "workingDir"));
  out.directory = directory.empty() ? in.node->work_directory : std::string(directory);
  if (!in.termination_log.empty()) {
    out.mounts.push_back(
        {.source = in.termination_log,
         .path = std::string(string_or(find(*in.container.spec, "terminationMessagePath"),
                                       "/dev/termination-log"))});
  }
  out.terminal = bool_or(find(*in.container.spec, "tty"));
  out.with_stdin = bool_or(find(*in.container.spec, "stdin"));
  set_security(in, out);
  const auto gpus = Quantity::parse(
      string_or(at(*in.container.spec, "resources", "limits", "nvidia.com/gpu"), "0"));
  return ContainerToRun{.spec = std::move(out),
                        .directories = std::move(mounts->directories),
                        .gpus = gpus && gpus->units() > 0 ? static_cast<size_t>(gpus->units()) : 0};
}

PodSpec pod_to_run(const Pod& pod, const NodeFacts& node) {
  PodSpec out{.id = pod.uid(),
              .hostname = pod.hostname(),
              .subdomain = std::string(string_or(find(pod.spec(), "subdomain"))),
              .name_space = std::string(pod.meta.ns()),
              .hostname_is_full = bool_or(find(pod.spec(), "setHostnameAsFQDN")),
              .resolver = resolver_of(pod),
              .shm_bytes = shm_bytes(pod, node),
              .memory = memory_directories(pod, node),
              .host_network = bool_or(find(pod.spec(), "hostNetwork")),
              .share_processes = bool_or(find(pod.spec(), "shareProcessNamespace")),
              .note = pod.meta.key.text()};
  for (const Json& alias : elements(find(pod.spec(), "hostAliases"))) {
    HostAlias added{.address = std::string(string_or(find(alias, "ip"))), .names = {}};
    for (const Json& name : elements(find(alias, "hostnames"))) {
      added.names.emplace_back(string_or(&name));
    }
    out.host_aliases.push_back(std::move(added));
  }
  return out;
}

std::string log_directory_of_pod(const std::string& state_directory, const Pod& pod) {
  return fmt::format("{}/pods/{}_{}_{}", state_directory, pod.meta.ns(), pod.meta.name(),
                     pod.uid());
}

std::string log_directory(const std::string& state_directory, const Pod& pod,
                          std::string_view container) {
  return fmt::format("{}/{}", log_directory_of_pod(state_directory, pod), container);
}

std::string log_path(const std::string& directory, uint64_t attempt) {
  return fmt::format("{}/{}.log", directory, attempt);
}

std::optional<uint64_t> capability_mask(std::string_view name) {
  if (name == "ALL") return (uint64_t{1} << kCapabilities.size()) - 1;
  if (name.starts_with("CAP_")) name.remove_prefix(4);
  for (size_t i = 0; i < kCapabilities.size(); ++i) {
    if (kCapabilities[i] == name) return uint64_t{1} << i;
  }
  return std::nullopt;
}

}  // namespace grapnel::local::kubelet
