#include "tests/simulation/jobset.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "api/node.h"
#include "operators/jobset/names.h"
#include "operators/jobset/plan.h"
#include "tests/simulation/jobset_cluster.h"

namespace grapnel::simulation {
namespace {

namespace kinds = kube::kinds;
namespace keys = jobset::keys;

std::string_view meta_text(const Json& object, std::string_view name) {
  return string_or(at(object, "metadata", name));
}

int64_t number_label(const Json& object, std::string_view key) {
  return static_cast<int64_t>(
      kube::parse_resource_version(string_or(at(object, "metadata", "labels", key), "0")));
}

bool is_going(const Json& object) {
  return at(object, "metadata", "deletionTimestamp") != nullptr;
}

bool is_finished(const Json& jobset) {
  return is_true(jobset, "Completed") || is_true(jobset, "Failed");
}

bool blocks(const Json& jobset) {
  return string_or(at(jobset, "spec", "failurePolicy", "restartStrategy")) == "BlockingRecreate";
}

// ---- what users ask for -------------------------------------------------------------------------

Json replicated_job(Random& random, std::string_view name) {
  const auto pods = static_cast<int64_t>(1 + random.below(2));
  const JsonObject pod{{"spec", JsonObject{{"containers", JsonArray{JsonObject{{"name", "c"}}}}}}};
  const JsonObject job{{"parallelism", pods},
                       {"completions", pods},
                       {"backoffLimit", static_cast<int64_t>(random.below(2))},
                       {"template", pod}};
  return JsonObject{{"name", name},
                    {"replicas", static_cast<int64_t>(1 + random.below(3))},
                    {"template", JsonObject{{"spec", job}}}};
}

Json failure_policy(Random& random) {
  constexpr std::string_view kActions[]{"FailJobSet", "RestartJobSet",
                                        "RestartJobSetAndIgnoreMaxRestarts", "RestartJob"};
  JsonObject policy{{"maxRestarts", static_cast<int64_t>(random.below(4))},
                    {"restartStrategy", random.chance(0.5) ? "Recreate" : "BlockingRecreate"}};
  if (random.chance(0.5)) {
    policy["rules"] = JsonArray{JsonObject{{"name", "r"},
                                           {"action", kActions[random.below(4)]},
                                           {"targetReplicatedJobs", JsonArray{"a"}}}};
  }
  return policy;
}

Json random_spec(Random& random) {
  JsonArray jobs{replicated_job(random, "a")};
  if (random.chance(0.6)) {
    Json second = replicated_job(random, "b");
    if (random.chance(0.3)) {
      second.as_object()["dependsOn"] = JsonArray{
          JsonObject{{"name", "a"}, {"status", random.chance(0.5) ? "Ready" : "Complete"}}};
    }
    jobs.push_back(std::move(second));
  }
  JsonObject spec{{"replicatedJobs", std::move(jobs)}, {"suspend", random.chance(0.2)}};
  if (random.chance(0.8)) spec["failurePolicy"] = failure_policy(random);
  if (random.chance(0.3)) spec["ttlSecondsAfterFinished"] = 30;
  return spec;
}

// ---- the controller -----------------------------------------------------------------------------

struct Caches {
  runtime::Cache<api::JobSet>& jobsets;
  runtime::Cache<jobset::ChildJob>& jobs;
  runtime::Cache<api::Service>& services;
  runtime::Cache<api::Pod>& pods;
  runtime::Cache<api::Node>& nodes;
};

std::optional<runtime::Plan> plan_for(const Caches& caches, const kube::Key& key, Time now,
                                      const runtime::Refusal* refused) {
  const auto jobset = caches.jobsets.get(key);
  if (!jobset) return std::nullopt;
  jobset::Observed observed{.jobset = *jobset, .refused = refused};
  const auto jobs = caches.jobs.controlled_by(jobset->meta.uid);
  for (const auto& job : jobs) observed.jobs.push_back(job.get());
  const auto service = caches.services.get({key.ns, jobset::subdomain(*jobset)});
  observed.service = service.get();
  std::vector<std::shared_ptr<const api::Pod>> pods;
  if (jobset::needs_pods(*jobset)) {
    pods = caches.pods.indexed("jobset", key.text());
    for (const auto& pod : pods) observed.pods.push_back(pod.get());
    observed.find_node = [&caches](std::string_view name) {
      // The cache keeps it alive: nothing changes while a plan is made.
      return caches.nodes.get({Interned(), std::string(name)}).get();
    };
  }
  return jobset::plan(observed, now);
}

class JobSetSubject final : public Subject {
 public:
  std::vector<ModelKind> kinds() const override {
    return {{.kind = kinds::kJobSet, .has_status = true},
            {.kind = kinds::kJob, .has_status = true},
            {.kind = kinds::kService},
            {.kind = kinds::kPod, .has_status = true, .is_graceful = true},
            {.kind = kinds::kNode, .has_status = true}};
  }

  std::shared_ptr<void> install(runtime::Manager& manager) override {
    auto& jobsets = manager.add_informer<api::JobSet>(
        {.kind = kinds::kJobSet, .watcher = {.page = 2}},
        [](JsonView object) { return api::decode_jobset(object); });
    auto& jobs = manager.add_informer<jobset::ChildJob>(
        {.kind = kinds::kJob, .watcher = {.page = 3}}, jobset::decode_child_job);
    auto& services = manager.add_informer<api::Service>(
        {.kind = kinds::kService}, [](JsonView object) { return api::decode_service(object); });
    auto& pods = manager.add_informer<api::Pod>({.kind = kinds::kPod, .watcher = {.page = 5}},
                                                jobset::decode_child_pod);
    auto& nodes = manager.add_informer<api::Node>(
        {.kind = kinds::kNode}, [](JsonView object) { return api::decode_node(object); });
    const auto key_of = [](const api::Pod& pod) {
      return kube::Key{pod.meta.key.ns, std::string(pod.meta.labels.get(keys::kJobSetName))};
    };
    pods.cache().add_index(
        "jobset", [key_of](const api::Pod& pod) { return std::vector{key_of(pod).text()}; });
    auto caches = std::make_shared<Caches>(
        Caches{jobsets.cache(), jobs.cache(), services.cache(), pods.cache(), nodes.cache()});
    auto& controller = manager.add_controller(
        {.name = "jobset",
         .kind = &kinds::kJobSet,
         .plan = [caches](const kube::Key& key, Time now, const runtime::Refusal* refused) {
           return plan_for(*caches, key, now, refused);
         }});
    manager.watch(jobsets, controller);
    manager.watch_owned(jobs, controller);
    manager.watch_owned(services, controller);
    manager.watch_mapped<api::Pod>(
        pods, controller, [key_of](const api::Pod& pod) { return std::vector{key_of(pod)}; });
    // A lost node concerns every JobSet with pods on it; they are few here.
    manager.watch_mapped<api::Node>(nodes, controller, [caches](const api::Node&) {
      std::vector<kube::Key> all;
      for (const auto& jobset : caches->jobsets.all()) all.push_back(jobset->meta.key);
      return all;
    });
    return caches;
  }

  void disturb(ApiModel& model, Random& random) override {
    const std::string name(1, static_cast<char>('x' + random.below(3)));
    const std::string all = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets";
    const auto ask = [&](std::string method, std::string target, const Json& body) {
      model.handle({.method = std::move(method),
                    .target = std::move(target),
                    .headers = {{"Content-Type", "application/merge-patch+json"}},
                    .body = to_text(body)},
                   "user");
    };
    switch (random.below(8)) {
      case 0:
      case 1:
      case 2:
        ask("POST", all,
            JsonObject{{"metadata", JsonObject{{"name", name}}}, {"spec", random_spec(random)}});
        break;
      case 3:
        ask("PATCH", all + "/" + name,
            JsonObject{{"spec", JsonObject{{"suspend", random.chance(0.4)}}}});
        break;
      case 4:
        if (random.chance(0.4)) ask("DELETE", all + "/" + name, JsonObject());
        break;
      case 5:
        cluster_.lose_node(model, random);
        break;
      case 6:
        cluster_.recover_nodes(model);
        break;
      default:
        delete_some_job(model, random, ask);
    }
  }

  void live(ApiModel& model, Random& random, bool trouble) override {
    if (!trouble && quiet_steps_++ == 4000) cluster_.recover_nodes(model);
    cluster_.step(model, random, trouble ? 0.25 : 0.0);
  }

  std::optional<std::string> check_write(const ApiModel& model, const WriteSeen& write) override {
    if (auto why = check_bound(write)) return why;
    if (write.kind == kinds::kPod && write.verb == "create") return check_pod(model, *write.after);
    if (!write.who.starts_with("operator")) return std::nullopt;
    if (write.kind == kinds::kJobSet && write.before != nullptr && write.after != nullptr) {
      return check_status(*write.before, *write.after);
    }
    const bool ends = write.after == nullptr || is_going(*write.after);
    if (write.kind == kinds::kJob && write.before != nullptr && ends && !is_going(*write.before)) {
      return check_delete(model, *write.before);
    }
    return std::nullopt;
  }

  std::optional<std::string> check_settled(const ApiModel& model) override {
    for (const Json* jobset : model.all(kinds::kJobSet)) {
      if (auto why = unsettled(model, *jobset)) {
        return fmt::format("{}: {}", meta_text(*jobset, "name"), *why);
      }
    }
    for (const auto& kind : {kinds::kJob, kinds::kService, kinds::kPod}) {
      for (const Json* child : model.all(kind)) {
        if (is_going(*child)) return fmt::format("{} stays", meta_text(*child, "name"));
        const Json* owners = at(*child, "metadata", "ownerReferences");
        if (!model.exists(string_or(find(owners->get_array()[0], "uid")))) {
          return fmt::format("{} is an orphan", meta_text(*child, "name"));
        }
      }
    }
    return std::nullopt;
  }

 private:
  // A status is written because something else has changed: never more often than that.
  std::optional<std::string> check_bound(const WriteSeen& write) {
    constexpr int kOfItself = 4;  // its first status, and what only time brings about
    const Json& object = write.after != nullptr ? *write.after : *write.before;
    if (write.kind != kinds::kJobSet) {
      ++changes_[std::string(string_or(at(object, "metadata", "labels", keys::kJobSetUid)))];
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

  template <class Ask>
  static void delete_some_job(const ApiModel& model, Random& random, const Ask& ask) {
    const auto jobs = model.all(kinds::kJob);
    if (jobs.empty()) return;
    const std::string path = fmt::format("/apis/batch/v1/namespaces/default/jobs/{}",
                                         meta_text(*jobs[random.below(jobs.size())], "name"));
    ask("DELETE", path, JsonObject{{"propagationPolicy", "Foreground"}});
  }

  static const Json* owner_of(const ApiModel& model, const Json& child) {
    const auto uid = string_or(at(child, "metadata", "labels", keys::kJobSetUid));
    for (const Json* jobset : model.all(kinds::kJobSet)) {
      if (meta_text(*jobset, "uid") == uid) return jobset;
    }
    return nullptr;
  }

  // With BlockingRecreate no pod is made while one of an earlier run is left.
  static std::optional<std::string> check_pod(const ApiModel& model, const Json& pod) {
    const Json* jobset = owner_of(model, pod);
    if (jobset == nullptr || !blocks(*jobset)) return std::nullopt;
    const int64_t attempt = number_label(pod, keys::kRestartAttempt);
    for (const Json* other : model.all(kinds::kPod)) {
      if (owner_of(model, *other) == jobset &&
          number_label(*other, keys::kRestartAttempt) < attempt) {
        return fmt::format("{} runs beside {} of an earlier run", meta_text(pod, "name"),
                           meta_text(*other, "name"));
      }
    }
    return std::nullopt;
  }

  static std::optional<std::string> check_status(const Json& before, const Json& after) {
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

  static int64_t counted_restarts(const Json& jobset) {
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

  // A Job of the current run of a JobSet that goes on is not ours to delete.
  static std::optional<std::string> check_delete(const ApiModel& model, const Json& job) {
    const Json* jobset = owner_of(model, job);
    if (jobset == nullptr || is_finished(*jobset) || is_going(*jobset)) return std::nullopt;
    if (number_label(job, keys::kRestartAttempt) < int_or(at(*jobset, "status", "restarts"))) {
      return std::nullopt;
    }
    const bool restarts_alone =
        string_or(at(job, "metadata", "labels", keys::kJobRestartAttempt), "-") != "-";
    if (restarts_alone && is_true(job, "FailureTarget")) return std::nullopt;
    return fmt::format("{} was deleted though it is of the current run", meta_text(job, "name"));
  }

  static std::optional<std::string> unsettled(const ApiModel& model, const Json& jobset) {
    if (is_going(jobset)) return "stays";
    const bool finished = is_finished(jobset);
    const bool suspended = bool_or(at(jobset, "spec", "suspend"));
    if (!finished && !suspended) return "has not ended";
    if (finished && at(jobset, "spec", "ttlSecondsAfterFinished") != nullptr) return "has outlived";
    if (finished == string_or(at(jobset, "status", "terminalState")).empty())
      return "terminalState";
    if (!finished && !is_true(jobset, "Suspended")) return "is not said to be suspended";
    for (const Json* job : model.all(kinds::kJob)) {
      if (owner_of(model, *job) != &jobset) continue;
      const bool ended = is_true(*job, "Complete") || is_true(*job, "Failed");
      if (finished && !ended) return fmt::format("{} still runs", meta_text(*job, "name"));
      if (suspended && !finished && !ended && !bool_or(at(*job, "spec", "suspend"))) {
        return fmt::format("{} is not suspended", meta_text(*job, "name"));
      }
    }
    return std::nullopt;
  }

  JobSetCluster cluster_;
  int quiet_steps_ = 0;
  std::map<std::string, int> changes_;        // of a JobSet's spec and children, by its uid
  std::map<std::string, int> status_writes_;  // by operators
};

}  // namespace

std::unique_ptr<Subject> make_jobset_subject() {
  return std::make_unique<JobSetSubject>();
}

}  // namespace grapnel::simulation
