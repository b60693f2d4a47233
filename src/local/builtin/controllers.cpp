#include "local/builtin/controllers.h"

#include "base/log.h"
#include "local/builtin/claims/plan.h"
#include "local/builtin/scheduler/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {

struct BuiltinControllers::Impl {
  Impl(Executor executor_in, kube::Client& client_in, Clock& clock, Random& random,
       BuiltinOptions options)
      : executor(executor_in),
        client(client_in),
        manager(executor, client, clock, random, {.events = runtime::EventOptions{}}),
        objects(executor, client, clock, random) {
    add_jobs(manager);
    auto& claims =
        manager.add_informer<Claim>({.kind = kube::kinds::kPersistentVolumeClaim}, decode_claim);
    auto& pods =
        manager.add_informer<SchedulerPod>({.kind = kube::kinds::kPod}, decode_scheduler_pod);
    add_scheduler(manager, claims, pods);
    add_claims(manager, claims, pods, std::move(options.volume_directory));
    add_garbage(manager, objects);
    add_workloads(manager);
    add_endpoints(manager);
    add_cron_jobs(manager);
    add_event_expiry(manager);
    add_namespaces(manager, objects, std::move(options.authority_pem),
                   [this](Json ns) { finalize(std::move(ns)); });
    add_definitions(manager, objects);
    add_quotas(manager, objects);
  }

  void finalize(Json ns) {
    std::erase_if(requests, [](const Spawned& request) { return request.done(); });
    requests.push_back(spawn(executor, [](kube::Client& client, Json object) -> Task<> {
      const auto done =
          co_await client.update(kube::kinds::kNamespace, std::move(object), "finalize");
      if (!done) log_debug("a namespace is not finalized yet", {{"why", done.error().message}});
    }(client, std::move(ns))));
  }

  Executor executor;
  kube::Client& client;
  runtime::Manager manager;
  AllObjects objects;
  std::vector<Spawned> requests;
};

BuiltinControllers::BuiltinControllers(Executor executor, kube::Client& client, Clock& clock,
                                       Random& random, BuiltinOptions options)
    : impl_(std::make_unique<Impl>(executor, client, clock, random, std::move(options))) {}

BuiltinControllers::~BuiltinControllers() = default;

Task<Result<>> BuiltinControllers::run() {
  Spawned following = spawn(impl_->executor, impl_->objects.run());
  auto ended = co_await impl_->manager.run();
  following.cancel();
  co_await following.join();
  co_await impl_->objects.end();
  for (auto& request : impl_->requests) co_await request.join();
  co_return ended;
}

void BuiltinControllers::stop() {
  impl_->manager.stop();
}

}  // namespace grapnel::local
