#include "local/node/container_encoding.h"

#include <algorithm>

#include "local/node/capabilities.h"

namespace grapnel::local {
namespace {

using shim::Field;

template <class Spec>
void encode_program(shim::Writer<std::string>& writer, const Spec& spec) {
  for (const std::string& word : spec.arguments) writer.text(Field::kArgument, word);
  for (const std::string& line : spec.environment) writer.text(Field::kEnvironment, line);
  writer.text(Field::kDirectory, spec.directory.empty() ? "/" : spec.directory);
  if (spec.user || spec.group) {
    writer.number(Field::kUser, spec.user.value_or(0));
    writer.number(Field::kGroup, spec.group.value_or(0));
  }
  if (spec.terminal) writer.number(Field::kTerminal, 1);
}

Time time_of(uint64_t nanoseconds) {
  return Time(std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(nanoseconds)));
}

ContainerState state_of(uint64_t number) {
  switch (static_cast<shim::State>(number)) {
    case shim::State::kStarting:
      return ContainerState::kStarting;
    case shim::State::kRunning:
      return ContainerState::kRunning;
    case shim::State::kExited:
      return ContainerState::kExited;
    case shim::State::kFailedToStart:
      return ContainerState::kFailedToStart;
  }
  return ContainerState::kLost;
}

}  // namespace

std::string encode_container(const ContainerSpec& container, const ContainerSurroundings& around) {
  std::string bytes;
  shim::Writer writer(bytes);
  encode_program(writer, container);
  writer.text(Field::kLogPath, container.log_path);
  writer.number(Field::kLogMaxBytes, container.log_max_bytes);
  writer.number(Field::kLogMaxFiles, container.log_max_files);
  for (const uint32_t group : container.extra_groups) writer.number(Field::kExtraGroup, group);
  if (container.with_stdin) writer.number(Field::kStdin, 1);
  if (container.no_new_privileges) writer.number(Field::kNoNewPrivileges, 1);
  for (const std::string& file : around.cgroup.join_files) writer.text(Field::kCgroupJoin, file);
  if (!around.cgroup.oom_file.empty()) writer.text(Field::kOomFile, around.cgroup.oom_file);
  if (around.isolation == Isolation::kNone) return bytes;

  if (!container.privileged) {
    writer.number(Field::kCapabilities, container.capabilities.value_or(kDefaultCapabilities));
  }
  if (!around.share_processes) writer.number(Field::kNewPids, 1);
  // In a user namespace of the pod's own this limit counts the pod's processes only.
  const bool limited = std::ranges::any_of(around.cgroup.join_files, [](const std::string& file) {
    return file.find("pids") != std::string::npos;
  });
  if (around.isolation == Isolation::kUser && container.limits.processes && !limited) {
    writer.number(Field::kProcessLimit, *container.limits.processes);
  }
  writer.text(Field::kRoot, around.root.root);
  for (const MountStep& step : around.root.steps) writer.text(Field::kMount, encode(step));
  return bytes;
}

std::string encode_exec(const ExecSpec& exec, const ContainerCgroup& cgroup, Isolation isolation) {
  std::string bytes;
  shim::Writer writer(bytes);
  encode_program(writer, exec);
  for (const std::string& file : cgroup.join_files) writer.text(Field::kCgroupJoin, file);
  if (isolation != Isolation::kNone) writer.number(Field::kCapabilities, kDefaultCapabilities);
  return bytes;
}

ContainerStatus decode_status(std::string_view fields) {
  ContainerStatus status;
  shim::Reader reader(fields);
  shim::FieldValue value;
  while (reader.next(value)) {
    switch (value.field) {
      case Field::kContainer:
        status.name = value.text;
        break;
      case Field::kAttempt:
        status.attempt = value.number();
        break;
      case Field::kState:
        status.state = state_of(value.number());
        break;
      case Field::kHostPid:
        status.host_pid = static_cast<int>(value.number());
        break;
      case Field::kStartedAt:
        status.started_at = time_of(value.number());
        break;
      case Field::kFinishedAt:
        status.finished_at = time_of(value.number());
        break;
      case Field::kExitCode:
        status.exit_code = static_cast<int>(value.number());
        break;
      case Field::kExitSignal:
        status.exit_signal = static_cast<int>(value.number());
        break;
      case Field::kOutOfMemory:
        status.out_of_memory = value.number() != 0;
        break;
      case Field::kError:
        status.error = value.text;
        break;
      default:
        break;
    }
  }
  return status;
}

}  // namespace grapnel::local
