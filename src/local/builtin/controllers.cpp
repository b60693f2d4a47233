#include "local/builtin/controllers.h"

#include <algorithm>
#include <map>
#include <memory>

#include "local/builtin/garbage/plan.h"
#include "local/builtin/job/plan.h"
#include "local/builtin/scheduler/plan.h"

namespace grapnel::local {
namespace {

namespace kinds = kube::kinds;
using runtime::Informer;
using runtime::Manager;
using runtime::Plan;

void add_jobs(Manager& manager) {
  auto& jobs = manager.add_informer<Job>({.kind = kinds::kJob}, decode_job);
  auto& pods = manager.add_informer<JobPod>({.kind = kinds::kPod}, decode_job_pod);
  // Pods of a Job that is gone are known by its name only.
  pods.cache().add_index("job", [](const JobPod& pod) {
    const auto key = runtime::controller_key(pod.meta, kinds::kJob);
    return key ? std::vector{key->text()} : std::vector<std::string>();
  });
  auto plan = [&](const kube::Key& key, Time now, const runtime::Refusal*) -> std::optional<Plan> {
    const auto job = jobs.cache().get(key);
    const auto named = pods.cache().indexed("job", key.text());
    JobObserved observed{.job = job.get()};
    JobObserved earlier;  // pods of a Job of this name that is gone
    for (const auto& pod : named) {
      const bool ours = job && pod->meta.controller()->uid == job->meta.uid;
      (ours ? observed : earlier).pods.push_back(pod.get());
    }
    Plan plan = local::plan(earlier, now);
    if (job) plan.add(local::plan(observed, now));
    return plan;
  };
  auto& controller =
      manager.add_controller({.name = "job", .kind = &kinds::kJob, .plan = std::move(plan)});
  manager.watch(jobs, controller);
  manager.watch_owned(pods, controller);
}

// Bindings that were sent and not yet seen. The answer to a Binding carries no version to wait for,
// so they count as done for a moment; one that failed is tried again after it.
class Assumed {
 public:
  using Pods = std::vector<std::shared_ptr<const SchedulerPod>>;

  Pods applied_to(Pods pods, Time now) {
    std::erase_if(bound_, [&](const auto& entry) { return now - entry.second.at > kBelieved; });
    for (auto& pod : pods) {
      const auto found = bound_.find(pod->meta.key);
      if (found == bound_.end() || !pod->node.empty()) continue;
      auto copy = std::make_shared<SchedulerPod>(*pod);
      copy->node = found->second.node;
      pod = std::move(copy);
    }
    return pods;
  }

  void remember(Plan& plan, Time now) {
    for (const auto& stage : plan.stages) {
      for (const auto& write : stage) {
        const auto* binding = std::get_if<runtime::Create>(&write);
        if (binding == nullptr) continue;
        const auto* metadata = at(binding->object, "metadata");
        bound_[{Interned(string_or(find(*metadata, "namespace"))),
                std::string(string_or(find(*metadata, "name")))}] = {
            Interned(string_or(at(binding->object, "target", "name"))), now};
      }
    }
    if (!bound_.empty()) plan.look_again_in(kBelieved * 2);
  }

 private:
  static constexpr Duration kBelieved = seconds(1);
  struct Bound {
    Interned node;
    Time at;
  };
  std::map<kube::Key, Bound> bound_;
};

void add_scheduler(Manager& manager) {
  auto& nodes = manager.add_informer<SchedulerNode>({.kind = kinds::kNode}, decode_scheduler_node);
  auto& pods = manager.add_informer<SchedulerPod>({.kind = kinds::kPod}, decode_scheduler_pod);
  const auto assumed = std::make_shared<Assumed>();
  auto plan = [&, assumed](const kube::Key&, Time now,
                           const runtime::Refusal*) -> std::optional<Plan> {
    const auto all_nodes = nodes.cache().all();
    const auto all_pods = assumed->applied_to(pods.cache().all(), now);
    SchedulerObserved observed;
    for (const auto& node : all_nodes) observed.nodes.push_back(node.get());
    for (const auto& pod : all_pods) observed.pods.push_back(pod.get());
    Plan plan = local::plan(observed, now);
    assumed->remember(plan, now);
    return plan;
  };
  // One key for the whole cluster: see the planner.
  auto& controller = manager.add_controller(
      {.name = "scheduler", .kind = &kinds::kPod, .plan = std::move(plan), .at_once = 1});
  const kube::Key cluster{Interned(), "cluster"};
  manager.watch_mapped<SchedulerNode>(
      nodes, controller, [cluster](const SchedulerNode&) { return std::vector{cluster}; });
  manager.watch_mapped<SchedulerPod>(
      pods, controller, [cluster](const SchedulerPod&) { return std::vector{cluster}; });
}

// Any object, for who owns it.
struct Owned {
  kube::Meta meta;
  bool operator==(const Owned&) const = default;
};

Result<Owned> decode_owned(JsonView object) {
  auto meta = kube::decode_meta(object, {.all_labels = false});
  if (!meta) return fail(meta.error());
  return Owned{std::move(*meta)};
}

// All kinds that own or are owned here, seen together.
class Ownership {
 public:
  explicit Ownership(Manager& manager) {
    static constexpr const kube::Kind* kKinds[] = {
        &kinds::kExperiment, &kinds::kJobSet,     &kinds::kJob,    &kinds::kPod,
        &kinds::kService,    &kinds::kConfigMap,  &kinds::kSecret, &kinds::kPersistentVolumeClaim,
        &kinds::kDeployment, &kinds::kReplicaSet,
    };
    for (const auto* kind : kKinds) {
      auto& informer = manager.add_informer<Owned>({.kind = *kind}, decode_owned);
      informer.cache().add_index("owner", [](const Owned& object) {
        std::vector<std::string> uids;
        for (const auto& owner : object.meta.owners) uids.push_back(owner.uid.text());
        return uids;
      });
      entries_.push_back({kind, &informer, nullptr});
    }
  }

  void add_controllers(Manager& manager, const std::shared_ptr<Ownership>& self) {
    for (auto& entry : entries_) {
      auto plan = [self, &entry](const kube::Key& key, Time,
                                 const runtime::Refusal*) -> std::optional<Plan> {
        return self->plan(entry, key);
      };
      entry.controller =
          &manager.add_controller({.name = fmt::format("garbage-{}", entry.kind->plural),
                                   .kind = entry.kind,
                                   .plan = plan});
    }
    for (auto& entry : entries_) watch(manager, entry);
  }

 private:
  struct Entry {
    const kube::Kind* kind = nullptr;
    Informer<Owned>* informer = nullptr;
    runtime::Controller* controller = nullptr;
  };

  // A change concerns the object itself, what it owns, and what owns it.
  void watch(Manager& manager, Entry& entry) {
    manager.watch(*entry.informer, *entry.controller);
    entry.informer->cache().add_handler([this](const Owned* before, const Owned* after) {
      const Owned& object = after != nullptr ? *after : *before;
      for (auto& other : entries_) {
        for (const auto& dependent :
             other.informer->cache().indexed("owner", object.meta.uid.text())) {
          other.controller->enqueue(dependent->meta.key);
        }
      }
      for (const auto& owner : object.meta.owners) {
        if (auto* found = entry_of(owner)) {
          found->controller->enqueue({object.meta.key.ns, owner.name});
        }
      }
    });
  }

  std::optional<Plan> plan(const Entry& entry, const kube::Key& key) {
    const auto object = entry.informer->cache().get(key);
    if (!object) return std::nullopt;
    GarbageObserved observed{.kind = entry.kind, .meta = object->meta};
    for (const auto& owner : object->meta.owners) {
      observed.owners.push_back(state_of(owner, object->meta));
    }
    std::vector<std::shared_ptr<const Owned>> kept;
    for (const auto& other : entries_) {
      for (auto& dependent : other.informer->cache().indexed("owner", object->meta.uid.text())) {
        observed.dependents.push_back({other.kind, &dependent->meta});
        kept.push_back(std::move(dependent));
      }
    }
    return local::plan(observed);
  }

  OwnerState state_of(const kube::OwnerReference& owner, const kube::Meta& object) {
    const auto* entry = entry_of(owner);
    if (entry == nullptr) return OwnerState::kPresent;  // a kind that we do not follow
    const auto& cache = entry->informer->cache();
    const auto found = cache.get({object.key.ns, owner.name});
    if (found && found->meta.uid == owner.uid) {
      const bool waits = found->meta.is_being_deleted() &&
                         std::ranges::any_of(found->meta.finalizers, [](const Interned& f) {
                           return f.view() == "foregroundDeletion";
                         });
      return waits ? OwnerState::kWaiting : OwnerState::kPresent;
    }
    return cache.last_version() >= object.resource_version ? OwnerState::kAbsent
                                                           : OwnerState::kUnknown;
  }

  Entry* entry_of(const kube::OwnerReference& owner) {
    for (auto& entry : entries_) {
      if (entry.kind->kind == owner.kind.view() &&
          entry.kind->api_version() == owner.api_version.view()) {
        return &entry;
      }
    }
    return nullptr;
  }

  std::vector<Entry> entries_;
};

}  // namespace

void add_builtin_controllers(Manager& manager) {
  add_jobs(manager);
  add_scheduler(manager);
  const auto ownership = std::make_shared<Ownership>(manager);
  ownership->add_controllers(manager, ownership);
}

}  // namespace grapnel::local
