#include "local/builtin/job/job.h"

#include <algorithm>
#include <charconv>

namespace grapnel::local {
namespace {

std::string_view text_at(JsonView value, std::string_view key) {
  const auto found = value.find(key);
  return found ? found->as_string().value_or("") : "";
}

// What the status of one container says: its restarts, and how it ended if it did.
void read_container(JsonView container, JobPod& pod) {
  if (const auto restarts = container.find("restartCount")) {
    pod.restarts += restarts->as_int().value_or(0);
  }
  const auto state = container.find("state");
  const auto terminated = state ? state->find("terminated") : std::nullopt;
  if (!terminated) return;
  const auto code = terminated->find("exitCode");
  const int64_t exit_code = code ? code->as_int().value_or(0) : 0;
  if (exit_code != 0) pod.exits.push_back({std::string(text_at(container, "name")), exit_code});
  if (const auto finished = parse_time(text_at(*terminated, "finishedAt"))) {
    pod.finished = std::max(pod.finished.value_or(*finished), *finished);
  }
}

}  // namespace

const JobCondition* JobStatus::condition(std::string_view type) const {
  const auto found = std::ranges::find_if(
      conditions, [&](const JobCondition& c) { return c.type == type && c.status == "True"; });
  return found == conditions.end() ? nullptr : &*found;
}

bool Job::operator==(const Job& other) const {
  return meta == other.meta && api::equal_values(spec, other.spec) &&
         api::equal_values(status, other.status);
}

bool JobPod::has_tracking_finalizer() const {
  return std::ranges::any_of(meta.finalizers,
                             [](const Interned& f) { return f.view() == kTrackingFinalizer; });
}

std::optional<int64_t> JobPod::index() const {
  const auto text = meta.annotations.get(kCompletionIndex);
  int64_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || index < 0) {
    return std::nullopt;
  }
  return index;
}

bool JobPod::operator==(const JobPod& other) const {
  const auto same_exit = [](const ContainerExit& a, const ContainerExit& b) {
    return a.name == b.name && a.exit_code == b.exit_code;
  };
  const auto same_condition = [](const OnPodCondition& a, const OnPodCondition& b) {
    return a.type == b.type && a.status == b.status;
  };
  return meta == other.meta && phase == other.phase && ready == other.ready &&
         restarts == other.restarts && finished == other.finished &&
         std::ranges::equal(exits, other.exits, same_exit) &&
         std::ranges::equal(conditions, other.conditions, same_condition);
}

Result<Job> decode_job(JsonView object) {
  return api::decode_resource<Job>(object);
}

Result<JobPod> decode_job_pod(JsonView object) {
  auto meta = kube::decode_meta(object, {.annotations = {kCompletionIndex, kIndexFailureCount}});
  if (!meta) return fail(meta.error());
  JobPod pod;
  pod.meta = std::move(*meta);
  const auto status = object.find("status");
  if (!status) return pod;
  pod.phase = text_at(*status, "phase");
  for (const auto* list : {"containerStatuses", "initContainerStatuses"}) {
    if (const auto containers = status->find(list)) {
      containers->for_each_element([&](size_t, JsonView container) {
        read_container(container, pod);
        return true;
      });
    }
  }
  if (const auto conditions = status->find("conditions")) {
    conditions->for_each_element([&](size_t, JsonView condition) {
      OnPodCondition seen{std::string(text_at(condition, "type")),
                          std::string(text_at(condition, "status"))};
      if (seen.type == "Ready") pod.ready = seen.status == "True";
      pod.conditions.push_back(std::move(seen));
      return true;
    });
  }
  return pod;
}

Json encode_status(const JobStatus& status) {
  return api::encode(status);
}

}  // namespace grapnel::local
