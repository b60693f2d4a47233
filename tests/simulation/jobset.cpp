#include "tests/simulation/jobset.h"

#include <algorithm>

#include "api/jobset.h"
#include "controllers/admission.h"
#include "controllers/controllers.h"
#include "operators/jobset/names.h"
#include "tests/simulation/jobset_cluster.h"
#include "tests/simulation/jobset_rules.h"

namespace grapnel::simulation {
namespace {

namespace kinds = kube::kinds;

// ---- what users ask for -------------------------------------------------------------------------

Json replicated_job(Random& random, std::string_view name) {
  const auto pods = static_cast<int64_t>(1 + random.below(2));
  const JsonObject container{{"name", "c"}, {"image", "i"}};
  const JsonObject pod{
      {"spec", JsonObject{{"containers", JsonArray{container}}, {"restartPolicy", "Never"}}}};
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

Json random_jobset(Random& random, std::string_view name, bool blocks) {
  JsonObject metadata{{"name", name}};
  // Less to wait for where nodes get lost.
  if (random.chance(0.6)) {
    metadata["annotations"] = JsonObject{{jobset::keys::kStuckDeletionTimeout, "30s"}};
  }
  Json spec = random_spec(random);
  if (blocks) {
    spec.as_object()["failurePolicy"] =
        JsonObject{{"maxRestarts", 3}, {"restartStrategy", "BlockingRecreate"}};
  }
  return JsonObject{{"apiVersion", kinds::kJobSet.api_version()},
                    {"kind", kinds::kJobSet.kind},
                    {"metadata", std::move(metadata)},
                    {"spec", std::move(spec)}};
}

// ---- the subject --------------------------------------------------------------------------------

// The controller as production wires it.
std::shared_ptr<void> add_jobset_controller(runtime::Manager& manager, const std::string& ns) {
  controllers::add_controllers(manager, {.ns = ns}, {controllers::find_controller("jobset")});
  return nullptr;
}

}  // namespace

WebhookConfigurations our_webhooks() {
  auto admission = std::make_shared<runtime::Admission>();
  controllers::add_admissions(*admission);
  return {.mutating = controllers::mutating_webhooks("default", "grapnel"),
          .validating = controllers::validating_webhooks("default", "grapnel"),
          .admission = std::move(admission)};
}

namespace {

class JobSetSubject final : public Subject {
 public:
  explicit JobSetSubject(JobSetOptions options) : options_(options) {}

  std::vector<ServedKind> kinds() const override {
    return {{.kind = kinds::kJobSet, .has_status = true},
            {.kind = kinds::kJob, .has_status = true},
            {.kind = kinds::kService},
            {.kind = kinds::kPersistentVolumeClaim},
            {.kind = kinds::kPod, .has_status = true, .is_graceful = true},
            {.kind = kinds::kNode, .has_status = true}};
  }
  std::vector<Json> definitions() const override { return {api::jobset_crd()}; }
  WebhookConfigurations webhooks() const override { return our_webhooks(); }

  std::shared_ptr<void> install(runtime::Manager& manager, const std::string& ns) override {
    return add_jobset_controller(manager, ns);
  }

  void disturb(Server& server, Random& random, Moment moment) override {
    const std::string name(1, static_cast<char>('x' + random.below(3)));
    const std::string all = collection_of(kinds::kJobSet);
    if (options_.blocks_and_loses_nodes && random.chance(0.4)) {
      if (random.chance(0.3)) cluster_.recover_nodes(server);
      return cluster_.lose_node(server, random, moment.now);
    }
    switch (random.below(8)) {
      case 0:
      case 1:
      case 2:
        server.ask("user", "POST", all,
                   random_jobset(random, name, options_.blocks_and_loses_nodes));
        break;
      case 3:
        server.ask("user", "PATCH", all + "/" + name,
                   JsonObject{{"spec", JsonObject{{"suspend", random.chance(0.4)}}}});
        break;
      case 4:
        if (random.chance(0.4)) server.ask("user", "DELETE", all + "/" + name);
        break;
      case 5:
        cluster_.lose_node(server, random, moment.now);
        break;
      case 6:
        cluster_.recover_nodes(server);
        break;
      default:
        if (const auto jobs = server.all(kinds::kJob); !jobs.empty()) {
          const std::string path = path_of(kinds::kJob, *jobs[random.below(jobs.size())]);
          server.ask("user", "DELETE", path, JsonObject{{"propagationPolicy", "Foreground"}});
        }
    }
  }

  std::optional<Duration> live(Server& server, Random& random, Moment moment) override {
    if (!moment.trouble) recover_in_time(server, moment.now);
    const double failures = options_.blocks_and_loses_nodes ? 0.6 : 0.25;
    auto next = cluster_.step(server, random, moment.now, moment.trouble ? failures : 0.0);
    if (!moment.trouble && cluster_.has_lost_nodes()) {
      next = std::min(next.value_or(seconds(5)), Duration(seconds(5)));
    }
    return next;
  }

  std::vector<Unreachable> never_reaches() const override {
    return {{"controller: a planner threw", "the planner of JobSets does not; that of echo does"},
            {"informer: an object cannot be read", "admission refuses what cannot be read"}};
  }

  std::optional<std::string> check_write(const Server& server, const WriteSeen& write) override {
    return rules_.check_write(server, write);
  }
  std::optional<std::string> check_alive(const Server& server, Time now) override {
    return rules_.check_alive(server, now);
  }
  std::optional<std::string> check_settled(const Server& server) override {
    if (cluster_.has_lost_nodes()) return "a node is lost";
    return rules_.check_settled(server);
  }

 private:
  // Nodes that are lost stay so as long as a restart has to go on without them.
  void recover_in_time(Server& server, Time now) {
    if (!over_since_) over_since_ = now;
    if (now - *over_since_ > minutes(1) && !JobSetRules::waits_for_lost_node(server)) {
      cluster_.recover_nodes(server);
    }
  }

  JobSetOptions options_;
  std::optional<Time> over_since_;  // all trouble
  JobSetCluster cluster_;
  JobSetRules rules_;
};

}  // namespace

std::unique_ptr<Subject> make_jobset_subject(JobSetOptions options) {
  return std::make_unique<JobSetSubject>(options);
}

}  // namespace grapnel::simulation
