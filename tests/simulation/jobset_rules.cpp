#include "tests/simulation/jobset_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "operators/jobset/names.h"
#include "tests/simulation/jobset_cluster.h"

namespace grapnel::simulation {
namespace {

namespace kinds = kube::kinds;
namespace keys = jobset::keys;

constexpr Duration kTimeToAct = minutes(3);

int64_t number_label(const Json& object, std::string_view key) {
  return static_cast<int64_t>(
      kube::parse_resource_version(string_or(at(object, "metadata", "labels", key), "0")));
}

bool is_finished(const Json& jobset) {
  return is_true(jobset, "Completed") || is_true(jobset, "Failed");
}

bool blocks(const Json& jobset) {
  return string_or(at(jobset, "spec", "failurePolicy", "restartStrategy")) == "BlockingRecreate";
}

const Json* owner_of(const Server& server, const Json& child) {
  const auto uid = label(child, keys::kJobSetUid);
  for (const Json* jobset : server.all(kinds::kJobSet)) {
    if (meta_text(*jobset, "uid") == uid) return jobset;
  }
  return nullptr;
}

int64_t counted_restarts(const Json& jobset) {
  int64_t sum = int_or(at(jobset, "status", "restartsCountTowardsMax"));
  const Json* list = at(jobset, "status", "replicatedJobsStatus");
  if (list == nullptr) return sum;
  for (const Json& entry : list->get_array()) {
    const Json* counts = find(entry, "jobRestartsCountTowardsMax");
    if (counts == nullptr) continue;
    for (const Json& count : counts->get_array()) sum += int_or(&count);
  }
  return sum;
}

// With BlockingRecreate no pod is made while one of an earlier run is left.
std::optional<std::string> check_pod(const Server& server, const Json& pod) {
  const Json* jobset = owner_of(server, pod);
  if (jobset == nullptr || !blocks(*jobset)) return std::nullopt;
  const int64_t attempt = number_label(pod, keys::kRestartAttempt);
  for (const Json* other : server.all(kinds::kPod)) {
    if (owner_of(server, *other) == jobset &&
        number_label(*other, keys::kRestartAttempt) < attempt) {
      return fmt::format("{} runs beside {} of an earlier run", meta_text(pod, "name"),
                         meta_text(*other, "name"));
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_status(const Json& before, const Json& after) {
  const auto name = meta_text(after, "name");
  const int64_t restarts = int_or(at(after, "status", "restarts"));
  const int64_t earlier = int_or(at(before, "status", "restarts"));
  if (restarts < earlier || restarts > earlier + 1) {
    return fmt::format("{} went from {} to {} restarts", name, earlier, restarts);
  }
  if (counted_restarts(after) > int_or(at(after, "spec", "failurePolicy", "maxRestarts"))) {
    return fmt::format("{} restarts more often than it may", name);
  }
  if (is_finished(before) && !is_finished(after)) return fmt::format("{} is unfinished", name);
  if (is_true(after, "Completed") && is_true(after, "Failed")) {
    return fmt::format("{} is both completed and failed", name);
  }
  return std::nullopt;
}

// A Job of the current run of a JobSet that goes on is not ours to delete.
std::optional<std::string> check_delete(const Server& server, const Json& job) {
  const Json* jobset = owner_of(server, job);
  if (jobset == nullptr || is_finished(*jobset) || is_going(*jobset)) return std::nullopt;
  if (number_label(job, keys::kRestartAttempt) < int_or(at(*jobset, "status", "restarts"))) {
    return std::nullopt;
  }
  const bool restarts_alone =
      string_or(at(job, "metadata", "labels", keys::kJobRestartAttempt), "-") != "-";
  if (restarts_alone && is_true(job, "FailureTarget")) return std::nullopt;
  return fmt::format("{} was deleted though it is of the current run", meta_text(job, "name"));
}

std::optional<std::string> unsettled(const Server& server, const Json& jobset) {
  if (is_going(jobset)) return "stays";
  const bool finished = is_finished(jobset);
  const bool suspended = bool_or(at(jobset, "spec", "suspend"));
  if (!finished && !suspended) return "has not ended";
  if (finished && at(jobset, "spec", "ttlSecondsAfterFinished") != nullptr) return "has outlived";
  if (finished == string_or(at(jobset, "status", "terminalState")).empty()) return "terminalState";
  if (!finished && !is_true(jobset, "Suspended")) return "is not said to be suspended";
  for (const Json* job : server.all(kinds::kJob)) {
    if (owner_of(server, *job) != &jobset) continue;
    const bool ended = is_true(*job, "Complete") || is_true(*job, "Failed");
    if (finished && !ended) return fmt::format("{} still runs", meta_text(*job, "name"));
    if (suspended && !finished && !ended && !bool_or(at(*job, "spec", "suspend"))) {
      return fmt::format("{} is not suspended", meta_text(*job, "name"));
    }
  }
  return std::nullopt;
}

// The planner's patience with pods that do not end.
Duration patience_of(const Json& jobset) {
  const auto asked = string_or(at(jobset, "metadata", "annotations", keys::kStuckDeletionTimeout));
  return parse_go_duration(asked).value_or(minutes(5) + seconds(30));
}

// The pods that hold up a restart, on nodes that are seen to be lost.
std::vector<const Json*> blocking_pods(const Server& server) {
  std::vector<const Json*> out;
  for (const Json* pod : server.all(kinds::kPod)) {
    if (!is_going(*pod)) continue;
    const Json* node = server.find(
        kinds::kNode, {Interned(), std::string(string_or(at(*pod, "spec", "nodeName")))});
    if (node == nullptr || is_true(*node, "Ready")) continue;
    const Json* jobset = owner_of(server, *pod);
    if (jobset != nullptr && blocks(*jobset) && !is_finished(*jobset) && !is_going(*jobset) &&
        number_label(*pod, keys::kRestartAttempt) < int_or(at(*jobset, "status", "restarts"))) {
      out.push_back(pod);
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> JobSetRules::check_write(const Server& server, const WriteSeen& write) {
  if (auto why = check_bound(write)) return why;
  if (write.kind == kinds::kPod && write.verb == "create") return check_pod(server, *write.after);
  if (!write.who.starts_with("operator")) return std::nullopt;
  if (write.kind == kinds::kJobSet && write.before != nullptr && write.after != nullptr) {
    return check_status(*write.before, *write.after);
  }
  const bool ends = write.after == nullptr || is_going(*write.after);
  if (write.kind == kinds::kJob && write.before != nullptr && ends && !is_going(*write.before)) {
    return check_delete(server, *write.before);
  }
  return std::nullopt;
}

// A status is written because something else has changed: never more often than that.
std::optional<std::string> JobSetRules::check_bound(const WriteSeen& write) {
  constexpr int kOfItself = 4;  // its first status, and what only time brings about
  const Json& object = write.after != nullptr ? *write.after : *write.before;
  if (write.kind != kinds::kJobSet) {
    ++changes_[std::string(label(object, keys::kJobSetUid))];
    return std::nullopt;
  }
  const std::string uid(meta_text(object, "uid"));
  if (!write.who.starts_with("operator")) {
    ++changes_[uid];
  } else if (++status_writes_[uid] > changes_[uid] + kOfItself) {
    return fmt::format("{}: {} writes of its status for {} changes", meta_text(object, "name"),
                       status_writes_[uid], changes_[uid]);
  }
  return std::nullopt;
}

bool JobSetRules::waits_for_lost_node(const Server& server) {
  return !blocking_pods(server).empty();
}

std::optional<std::string> JobSetRules::check_alive(const Server& server, Time now) {
  std::map<std::string, Time, std::less<>> blocked;
  for (const Json* pod : blocking_pods(server)) {
    const std::string uid(meta_text(*pod, "uid"));
    const auto known = blocked_since_.find(uid);
    const Time since = known == blocked_since_.end() ? now : known->second;
    if (now - since > patience_of(*owner_of(server, *pod)) + kTimeToAct) {
      return fmt::format("a restart waits for {}, whose node is lost", meta_text(*pod, "name"));
    }
    blocked.emplace(uid, since);
  }
  blocked_since_ = std::move(blocked);
  return std::nullopt;
}

std::optional<std::string> JobSetRules::check_settled(const Server& server) const {
  for (const Json* jobset : server.all(kinds::kJobSet)) {
    if (auto why = unsettled(server, *jobset)) {
      return fmt::format("{}: {}", meta_text(*jobset, "name"), *why);
    }
  }
  for (const auto& kind : {kinds::kJob, kinds::kService, kinds::kPod}) {
    for (const Json* child : server.all(kind)) {
      const Json* owners = at(*child, "metadata", "ownerReferences");
      if (owners == nullptr) continue;
      if (is_going(*child)) return fmt::format("{} stays", meta_text(*child, "name"));
      if (!server.exists(string_or(find(owners->get_array()[0], "uid")))) {
        return fmt::format("{} is an orphan", meta_text(*child, "name"));
      }
    }
  }
  return std::nullopt;
}

}  // namespace grapnel::simulation
