#include <map>
#include <memory>

#include "local/builtin/claims/plan.h"
#include "local/builtin/scheduler/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {

namespace kinds = kube::kinds;
using runtime::Manager;
using runtime::Plan;

namespace {

// Bindings that were sent but not yet seen. The answer to a Binding has no version to wait for, so
// a Binding counts as done for a moment. If it failed, it is tried again after that.
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
        const Json object = binding->object.make();
        bound_[binding->object.key()] = {Interned(string_or(at(object, "target", "name"))), now};
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

}  // namespace

void add_scheduler(Manager& manager, runtime::Informer<Claim>& claims,
                   runtime::Informer<SchedulerPod>& pods) {
  auto& nodes = manager.add_informer<SchedulerNode>({.kind = kinds::kNode}, decode_scheduler_node);
  const auto assumed = std::make_shared<Assumed>();
  auto plan = [&, assumed](const kube::Key&, Time now,
                           const runtime::Refusal*) -> std::optional<Plan> {
    const auto all_nodes = nodes.cache().all();
    const auto all_pods = assumed->applied_to(pods.cache().all(), now);
    SchedulerObserved observed;
    for (const auto& node : all_nodes) observed.nodes.push_back(node.get());
    for (const auto& pod : all_pods) observed.pods.push_back(pod.get());
    for (const auto& claim : claims.cache().all()) {
      observed.claims[claim->meta.key] = claim->meta.is_being_deleted() ? ClaimState::kGoing
                                         : claim->is_bound()            ? ClaimState::kBound
                                                                        : ClaimState::kUnbound;
    }
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
  manager.watch_mapped<Claim>(claims, controller,
                              [cluster](const Claim&) { return std::vector{cluster}; });
  manager.watch_mapped<SchedulerPod>(
      pods, controller, [cluster](const SchedulerPod&) { return std::vector{cluster}; });
}

}  // namespace grapnel::local
