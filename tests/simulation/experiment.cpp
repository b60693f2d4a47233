#include "tests/simulation/experiment.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/experiment.h"
#include "api/jobset.h"
#include "api/schema.h"
#include "controllers/controllers.h"
#include "tests/simulation/jobset.h"
#include "tests/simulation/jobset_cluster.h"
#include "tests/simulation/jobset_rules.h"

namespace grapnel::simulation {
namespace {

namespace kinds = kube::kinds;

std::string_view phase_of(const Json& experiment) {
  return string_or(at(experiment, "status", "phase"));
}

bool has_end(const Json& experiment) {
  return at(experiment, "status", "endTime") != nullptr;
}

Json random_experiment(Random& random, std::string_view name) {
  constexpr std::string_view kOperators[]{"jax", "pytorch", "jobset"};
  const JsonObject worker{{"count", static_cast<int64_t>(1 + random.below(3))},
                          {"resources", JsonObject{{"cpus", 1}, {"ramRatio", 1}}}};
  JsonObject spec{{"operator", kOperators[random.below(3)]},
                  {"image", "i"},
                  {"command", "x"},
                  {"types", JsonObject{{"worker", worker}}},
                  {"backoffLimit", static_cast<int64_t>(random.below(3))}};
  if (random.chance(0.3)) spec["ttlSecondsAfterFinished"] = 30;
  return JsonObject{{"apiVersion", kinds::kExperiment.api_version()},
                    {"kind", kinds::kExperiment.kind},
                    {"metadata", JsonObject{{"name", name}}},
                    {"spec", std::move(spec)}};
}

class ExperimentSubject final : public Subject {
 public:
  std::vector<ServedKind> kinds() const override {
    return {{.kind = kinds::kExperiment, .has_status = true},
            {.kind = kinds::kJobSet, .has_status = true},
            {.kind = kinds::kJob, .has_status = true},
            {.kind = kinds::kService},
            {.kind = kinds::kPersistentVolumeClaim},
            {.kind = kinds::kPod, .has_status = true, .is_graceful = true},
            {.kind = kinds::kNode, .has_status = true}};
  }
  std::vector<Json> definitions() const override {
    return {api::crd_of<api::Experiment>(), api::jobset_crd()};
  }
  WebhookConfigurations webhooks() const override { return our_webhooks(); }

  std::shared_ptr<void> install(runtime::Manager& manager, const std::string& ns) override {
    controllers::add_controllers(manager, {.ns = ns});
    return nullptr;
  }

  void disturb(Server& server, Random& random, Moment moment) override {
    const std::string name(1, static_cast<char>('x' + random.below(3)));
    const std::string path = collection_of(kinds::kExperiment) + "/" + name;
    switch (random.below(8)) {
      case 0:
      case 1:
      case 2:
        create(server, random, name);
        break;
      case 3:
        server.ask("user", "PATCH", path, JsonObject{{"spec", JsonObject{{"cancel", true}}}});
        break;
      case 4:
        if (random.chance(0.4)) server.ask("user", "DELETE", path);
        break;
      case 5:
        if (!random.chance(0.2)) break;
        server.ask("user", "DELETE", collection_of(kinds::kJobSet) + "/" + name);
        break;
      case 6:
        cluster_.lose_node(server, random, moment.now);
        break;
      default:
        cluster_.recover_nodes(server);
    }
  }

  std::optional<Duration> live(Server& server, Random& random, Moment moment) override {
    if (!moment.trouble) cluster_.recover_nodes(server);
    cluster_.set_refusals(moment.trouble ? 0.1 : 0.0);
    return cluster_.step(server, random, moment.now, moment.trouble ? 0.2 : 0.0);
  }

  std::optional<std::string> check_write(const Server& server, const WriteSeen& write) override {
    if (auto why = rules_.check_write(server, write)) return why;
    if (write.kind == kinds::kJobSet && write.before != nullptr && write.after == nullptr &&
        write.who == "user") {
      ++children_deleted_[owner_of(*write.before)];
    }
    if (!write.who.starts_with("operator")) return std::nullopt;
    if (write.kind == kinds::kJobSet && write.before == nullptr)
      return check_child(server, *write.after);
    if (write.kind == kinds::kExperiment && write.before != nullptr && write.after != nullptr) {
      return check_status(*write.before, *write.after);
    }
    return std::nullopt;
  }

  std::optional<std::string> check_settled(const Server& server) override {
    for (const Json* experiment : server.all(kinds::kExperiment)) {
      const auto name = meta_text(*experiment, "name");
      if (is_going(*experiment)) return fmt::format("experiment {} stays", name);
      if (!has_end(*experiment)) return fmt::format("experiment {} has not ended", name);
      if (at(*experiment, "spec", "ttlSecondsAfterFinished") != nullptr) {
        return fmt::format("experiment {} has outlived", name);
      }
      if (auto why = check_end(server, *experiment)) return why;
    }
    for (const Json* jobset : server.all(kinds::kJobSet)) {
      if (!server.exists(owner_of(*jobset))) {
        return fmt::format("{} is an orphan", meta_text(*jobset, "name"));
      }
    }
    if (cluster_.has_lost_nodes()) return "a node is lost";
    return rules_.check_settled(server);
  }

 private:
  // The spec is right, so only what is there already may stand in its way, or a webhook that fails.
  static void create(Server& server, Random& random, const std::string& name) {
    server.ask("user", "POST", collection_of(kinds::kExperiment), random_experiment(random, name));
  }

  static std::string owner_of(const Json& jobset) {
    const Json* owners = at(jobset, "metadata", "ownerReferences");
    return std::string(string_or(grapnel::find(owners->get_array()[0], "uid")));
  }

  // One child in its life, unless somebody deletes it before that is written down. An operator that
  // has not heard that the experiment is gone may make one for the garbage collector.
  std::optional<std::string> check_child(const Server& server, const Json& jobset) {
    const std::string uid = owner_of(jobset);
    if (!server.exists(uid)) return std::nullopt;
    if (++children_made_[uid] <= 1 + children_deleted_[uid]) return std::nullopt;
    return fmt::format("{} was created again", meta_text(jobset, "name"));
  }

  static std::optional<std::string> check_status(const Json& before, const Json& after) {
    const auto name = meta_text(after, "name");
    if (int_or(at(after, "status", "restarts")) < int_or(at(before, "status", "restarts"))) {
      return fmt::format("experiment {} has fewer restarts than before", name);
    }
    if (!has_end(before)) return std::nullopt;
    if (!equal(*grapnel::find(before, "status"), *grapnel::find(after, "status"))) {
      return fmt::format("experiment {} had ended, and changed", name);
    }
    return std::nullopt;
  }

  // That it ended as its JobSet did.
  std::optional<std::string> check_end(const Server& server, const Json& experiment) const {
    const auto name = meta_text(experiment, "name");
    const auto phase = phase_of(experiment);
    const Json* child = server.find(kinds::kJobSet, {Interned("default"), std::string(name)});
    if (child == nullptr) {
      const auto reason = string_or(at(experiment, "status", "reason"));
      const bool may_be = children_deleted_.contains(meta_text(experiment, "uid")) ||
                          phase == "Cancelled" || reason == "ChildDeleted";
      if (!may_be) return fmt::format("experiment {} has no child, and is {}", name, phase);
    } else if (phase == "Succeeded" ? !is_true(*child, "Completed")
                                    : phase == "Failed" && !is_true(*child, "Failed")) {
      return fmt::format("experiment {} is {}, unlike its child", name, phase);
    }
    return std::nullopt;
  }

  JobSetCluster cluster_;
  JobSetRules rules_;
  std::map<std::string, int, std::less<>> children_made_;  // by the experiment's uid
  std::map<std::string, int, std::less<>> children_deleted_;
};

}  // namespace

std::unique_ptr<Subject> make_experiment_subject() {
  return std::make_unique<ExperimentSubject>();
}

}  // namespace grapnel::simulation
