#include "local/kubelet/decide.h"

#include <algorithm>

#include "local/kubelet/pod_status.h"

namespace grapnel::local::kubelet {
namespace {

constexpr Duration kFirstBackOff = seconds(10);
constexpr Duration kLongestBackOff = minutes(5);
constexpr Duration kForgiven = minutes(10);  // a run this long clears what was before
constexpr Duration kShortestGrace = seconds(1);
constexpr Duration kDefaultGrace = seconds(30);

Duration usual_grace(const Pod& pod) {
  const Json* asked = find(pod.spec(), "terminationGracePeriodSeconds");
  return asked == nullptr ? kDefaultGrace : Duration(seconds(std::max<int64_t>(int_or(asked), 1)));
}

// Collects what to do while it walks over the containers.
class Walk {
 public:
  Walk(const Observed& observed, Time now) : o_(observed), now_(now) {}

  // True when the pod's main containers may run.
  bool init() {
    const bool began = std::ranges::any_of(
        main_containers(*o_.pod), [&](const Container& c) { return o_.facts(c).now.has_value(); });
    for (const Container& container : init_containers(*o_.pod)) {
      const ContainerFacts& facts = o_.facts(container);
      if (container.is_sidecar()) {
        keep_running(container, facts);
        if (!began && !(facts.is_running() && facts.started)) return false;
        continue;
      }
      if (began) continue;
      if (facts.now && facts.now->is_over() && !failed(*facts.now)) continue;
      keep_running(container, facts);
      return false;
    }
    return true;
  }

  void main() {
    for (const Container& container : main_containers(*o_.pod)) {
      keep_running(container, o_.facts(container));
    }
  }

  void stop(const std::vector<Container>& containers, Duration grace) {
    for (const Container& container : containers) {
      const ContainerFacts& facts = o_.facts(container);
      if (facts.is_running() && !facts.told_to_stop) {
        out_.actions.emplace_back(
            StopContainer{.name = std::string(container.name()), .grace = grace});
      }
    }
  }

  void add(Action action) { out_.actions.push_back(std::move(action)); }
  void look_again(Time when) {
    if (!out_.look_again || when < *out_.look_again) out_.look_again = when;
  }
  Decision take() { return std::move(out_); }

 private:
  static bool failed(const ContainerStatus& status) {
    return status.state != ContainerState::kExited || status.exit_code != 0;
  }

  void keep_running(const Container& container, const ContainerFacts& facts) {
    if (facts.is_running()) {
      if (facts.is_unhealthy)
        stop({container}, facts.unhealthy_grace.value_or(usual_grace(*o_.pod)));
      return;
    }
    if (facts.now && !should_restart(*o_.pod, container, *facts.now)) return;
    Time start_at = facts.now ? facts.now->finished_at + back_off(facts) : now_;
    if (facts.trouble) start_at = std::max(start_at, facts.trouble->retry_at);
    if (start_at > now_) {
      look_again(start_at);
      return;
    }
    add(StartContainer{.name = std::string(container.name()), .attempt = next_attempt(facts)});
  }

  const Observed& o_;
  Time now_;
  Decision out_;
};

Duration grace_of(const Observed& o, Time now) {
  if (!o.pod->meta.deleted) return usual_grace(*o.pod);
  // The time of deletion is given in whole seconds; the pod gets the fraction that was cut off,
  // too.
  const Duration rest = *o.pod->meta.deleted + seconds(1) - now;
  const auto* promised = at(*o.pod->object, "metadata", "deletionGracePeriodSeconds");
  const Duration most = promised == nullptr ? rest : Duration(seconds(int_or(promised)));
  return std::clamp<Duration>(rest, kShortestGrace, std::max<Duration>(most, kShortestGrace));
}

bool is_main_running(const Observed& o) {
  return std::ranges::any_of(main_containers(*o.pod),
                             [&](const Container& c) { return o.facts(c).is_running(); });
}

// Main containers first. Sidecars serve them to their end and are then stopped in reverse order.
void end(const Observed& o, Walk& walk, Time now) {
  const Duration grace = grace_of(o, now);
  if (is_main_running(o)) {
    walk.stop(main_containers(*o.pod), grace);
    return;
  }
  auto others = init_containers(*o.pod);
  std::ranges::reverse(others);
  for (const Container& container : others) {
    if (!o.facts(container).is_running()) continue;
    walk.stop({container}, grace);
    return;
  }
}

// Nothing runs any more. The rest is removed only when the API server knows the end: if we are
// restarted before that, the exit codes must still be there.
void clean_up(const Observed& o, Walk& walk) {
  if (!o.pod->is_finished()) return;
  if (o.has_sandbox) walk.add(RemoveSandbox{});
  if (!o.pod->meta.is_being_deleted()) return;
  const auto* grace = at(*o.pod->object, "metadata", "deletionGracePeriodSeconds");
  const bool is_held_by_finalizers_only = int_or(grace, -1) == 0;
  if (!is_held_by_finalizers_only) walk.add(DeletePod{});
}

void go_on(const Observed& o, Walk& walk, Time now) {
  if (o.trouble && o.trouble->retry_at > now) {
    walk.look_again(o.trouble->retry_at);
    return;
  }
  if (o.is_lost && o.has_sandbox) {
    walk.add(RemoveSandbox{});
    walk.add(StartSandbox{});
    return;
  }
  if (!o.has_sandbox) {
    walk.add(StartSandbox{});
    return;
  }
  if (walk.init()) walk.main();
}

}  // namespace

const ContainerFacts& Observed::facts(const Container& container) const {
  static const ContainerFacts nothing;
  const auto found = containers.find(container.name());
  return found == containers.end() ? nothing : found->second;
}

Duration back_off(const ContainerFacts& facts) {
  if (facts.restarts_in_a_row == 0 || !facts.now) return {};
  if (facts.now->finished_at - facts.now->started_at >= kForgiven) return {};
  const unsigned doublings = std::min(facts.restarts_in_a_row - 1, 10U);
  return std::min<Duration>(kFirstBackOff * (1LL << doublings), kLongestBackOff);
}

bool should_restart(const Pod& pod, const Container& container, const ContainerStatus& ended) {
  if (container.is_sidecar()) return true;
  const bool is_failure = ended.state != ContainerState::kExited || ended.exit_code != 0;
  switch (pod.restart_policy()) {
    case RestartPolicy::kAlways:
      return is_failure || !container.is_init;
    case RestartPolicy::kOnFailure:
      return is_failure;
    case RestartPolicy::kNever:
      return false;
  }
  return false;
}

uint64_t next_attempt(const ContainerFacts& facts) {
  return facts.now ? facts.now->attempt + 1 : 0;
}

Decision decide(const Observed& o, Time now) {
  Walk walk(o, now);
  const Progress progress = progress_of(o, now);
  if (progress.is_over) {
    clean_up(o, walk);
  } else if (progress.will_start_nothing) {
    end(o, walk, now);
  } else {
    go_on(o, walk, now);
    const int64_t deadline = int_or(find(o.pod->spec(), "activeDeadlineSeconds"), 0);
    const auto started = parse_time(string_or(find(o.pod->status(), "startTime")));
    if (deadline > 0) walk.look_again(started.value_or(now) + seconds(deadline));
  }
  Decision out = walk.take();
  // The final status is written once, whoever wrote it.
  out.status = o.pod->is_finished() ? o.pod->status() : status_of(o, progress, now);
  return out;
}

std::string describe(const Action& action) {
  struct {
    std::string operator()(const StartSandbox&) const { return "start pod"; }
    std::string operator()(const StartContainer& a) const {
      return fmt::format("start {} #{}", a.name, a.attempt);
    }
    std::string operator()(const StopContainer& a) const {
      return fmt::format("stop {} in {}s", a.name, duration_cast<seconds>(a.grace).count());
    }
    std::string operator()(const RemoveSandbox&) const { return "remove pod"; }
    std::string operator()(const DeletePod&) const { return "delete object"; }
  } words;
  return std::visit(words, action);
}

namespace {

std::optional<ContainerStatus> ended_of(const Json* terminated, std::string_view name,
                                        uint64_t attempt) {
  if (terminated == nullptr || !terminated->is_object()) return std::nullopt;
  const auto time = [&](std::string_view field) {
    return parse_time(string_or(find(*terminated, field))).value_or(Time{});
  };
  return ContainerStatus{.name = std::string(name),
                         .attempt = attempt,
                         .state = ContainerState::kExited,
                         .host_pid = 0,
                         .started_at = time("startedAt"),
                         .finished_at = time("finishedAt"),
                         .exit_code = static_cast<int>(int_or(find(*terminated, "exitCode"))),
                         .exit_signal = static_cast<int>(int_or(find(*terminated, "signal"))),
                         .out_of_memory = string_or(find(*terminated, "reason")) == "OOMKilled",
                         .error = {}};
}

ContainerFacts facts_of_one(const Json& status) {
  ContainerFacts facts;
  const auto name = string_or(find(status, "name"));
  const auto attempt =
      static_cast<uint64_t>(std::max<int64_t>(int_or(find(status, "restartCount")), 0));
  const Json* last = at(status, "lastState", "terminated");
  facts.now = ended_of(at(status, "state", "terminated"), name, attempt);
  facts.message = string_or(at(status, "state", "terminated", "message"));
  if (const Json* running = at(status, "state", "running")) {
    facts.now = ContainerStatus{
        .name = std::string(name),
        .attempt = attempt,
        .state = ContainerState::kLost,
        .started_at = parse_time(string_or(find(*running, "startedAt"))).value_or(Time{})};
  }
  if (facts.now) {
    facts.before = ended_of(last, name, attempt == 0 ? 0 : attempt - 1);
    facts.message_before = last == nullptr ? "" : string_or(find(*last, "message"));
  } else {
    // It waits for its next start: the last one that ended is the latest.
    facts.now = ended_of(last, name, attempt);
    facts.message = last == nullptr ? "" : string_or(find(*last, "message"));
  }
  facts.restarts_in_a_row = static_cast<unsigned>(std::min<uint64_t>(attempt, 100));
  facts.ready = bool_or(find(status, "ready"));
  facts.started = bool_or(find(status, "started"));
  return facts;
}

}  // namespace

std::map<std::string, ContainerFacts, std::less<>> facts_of_status(const Pod& pod) {
  std::map<std::string, ContainerFacts, std::less<>> out;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& status : elements(find(pod.status(), list))) {
      const auto name = string_or(find(status, "name"));
      if (!name.empty()) out.emplace(name, facts_of_one(status));
    }
  }
  return out;
}

}  // namespace grapnel::local::kubelet
