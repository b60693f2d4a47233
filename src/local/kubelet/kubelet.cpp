#include "local/kubelet/kubelet.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "api/service.h"
#include "base/files.h"
#include "base/log.h"
#include "local/kubelet/backend.h"
#include "local/kubelet/environment.h"
#include "local/kubelet/kept_logs.h"
#include "local/kubelet/names.h"
#include "local/kubelet/node_object.h"
#include "local/kubelet/outbound.h"
#include "local/kubelet/pod.h"
#include "local/kubelet/pod_worker.h"
#include "local/kubelet/service_proxy.h"
#include "local/kubelet/volume_sweeper.h"
#include "local/node/dns.h"
#include "local/node/pod_runner.h"
#include "local/node/sandbox.h"
#include "runtime/informer.h"
#include "runtime/plan.h"

namespace grapnel::local {

using kubelet::Pod;
using kubelet::PodWorker;

namespace {

constexpr Duration kHeartbeat = seconds(15);
// Many pods start together: their names are told in one go.
constexpr Duration kNamesDelay = milliseconds(20);

}  // namespace

struct Kubelet::Impl final : kubelet::PodDirectory {
  struct Running {
    std::shared_ptr<PodWorker> worker;  // those who serve a user hold it, too
    Spawned task;
  };

  // Left by remove_all(): the next run() knows what became of the pods.
  std::string stop_mark() const { return options.state_directory + "/stopped"; }

  KubeletOptions options;
  std::unique_ptr<PodRunner> runner;
  kubelet::WorkerContext context;
  kubelet::NodeDescription node;
  std::unique_ptr<runtime::Informer<Pod>> informer;
  std::unique_ptr<runtime::Informer<api::Service>> services;
  std::vector<Spawned> background;  // informers, heartbeat, names
  std::unique_ptr<dns::Server> dns;
  std::optional<std::pair<Fd, Fd>> dns_sockets;  // until names are known
  std::unique_ptr<kubelet::ServiceProxy> proxy;
  kubelet::Outbound outbound;
  kubelet::Gpus gpus;
  kubelet::KeptLogs kept_logs;
  kubelet::Backend backend;
  std::map<std::string, PodStatus> recovered;  // by uid, until their objects are seen
  std::map<std::string, Running> workers;      // by uid
  std::vector<std::string> ended;              // their workers have nothing left to do
  Signal changed;
  std::unique_ptr<kubelet::VolumeSweeper> sweeper;
  bool is_running = false;
  bool is_stopping = false;

  kubelet::ChangingGroups groups;
  dns::Table table;
  bool is_table_old = true;
  bool are_routes_old = false;
  Signal renamed;

  explicit Impl(KubeletOptions given)
      : options(std::move(given)),
        outbound(options.executor, *options.clock),
        gpus(options.gpu_files),
        kept_logs(options.state_directory, options.wants_logs),
        backend({.executor = options.executor,
                 .clock = options.clock,
                 .pods = this,
                 .state_directory = options.state_directory,
                 .kept = &kept_logs}),
        changed(options.executor),
        renamed(options.executor) {}

  Task<Result<>> open();
  void describe_node();
  Task<Result<>> register_node();
  Task<> set_ready(bool is_ready);
  Task<> renew_lease();
  Task<> heartbeat();
  Task<> serve_names();
  const dns::Table& names();
  std::vector<kubelet::PlacedPod> placed_pods() const;
  void names_changed();
  Task<> keep_names();
  void follow();
  void follow_volumes();
  Task<> end_background();
  void on_pod(const Pod* before, const Pod* after);
  static Task<> work(Impl& impl, PodWorker& worker, std::string uid);
  Task<> sweep_unknown();
  Task<> end_workers();
  std::shared_ptr<PodWorker> find_pod(std::string_view ns, std::string_view name) override;
  PodWorker* worker_of(const std::string& uid) {
    const auto found = workers.find(uid);
    return found == workers.end() ? nullptr : found->second.worker.get();
  }
};

Task<Result<>> Kubelet::Impl::open() {
  if (runner) co_return Result<>();
  const std::string directory = options.state_directory + "/node";
  for (const char* name : {"/node", "/pods", "/claims"}) {
    if (auto made = make_directory(options.state_directory + name, 0700); !made) co_return made;
  }
  auto opened =
      co_await PodRunner::open({.executor = options.executor,
                                .state_directory = directory,
                                .isolation = options.isolation,
                                .pod_network = options.pod_network,
                                .dns_address = options.dns_address,
                                .on_status =
                                    [this](const std::string& uid, const ContainerStatus& status) {
                                      if (auto* worker = worker_of(uid)) worker->take(status);
                                      backend.containers_changed();
                                    },
                                .on_lost =
                                    [this](const std::string& uid) {
                                      if (auto* worker = worker_of(uid)) worker->sandbox_is_lost();
                                      backend.containers_changed();
                                    }});
  if (!opened) co_return fail_in("starting the node", opened.error());
  runner = std::move(*opened);
  auto found = co_await runner->recover();
  if (!found) co_return fail_in("looking for pods of an earlier run", found.error());
  for (PodStatus& pod : *found) {
    gpus.recover(pod.id, runner->pod_directory(pod.id));
    recovered.emplace(pod.id, std::move(pod));
  }
  co_return Result<>();
}

void Kubelet::Impl::describe_node() {
  ClusterNetwork* network = runner->network();
  node = {.name = options.node_name,
          .address = network == nullptr ? "127.0.0.1" : network->addresses().gateway(),
          .machine = kubelet::this_machine(options.state_directory),
          .oversubscribe = options.oversubscribe,
          .max_pods = options.max_pods,
          .shortcomings = runner->shortcomings(),
          .pod_network = options.pod_network,
          .gpus = gpus.all()};
  context = {.executor = options.executor,
             .client = options.client,
             .clock = options.clock,
             .runner = runner.get(),
             .gpus = &gpus,
             .node = {.name = node.name,
                      .address = node.address,
                      .work_directory = options.work_directory,
                      .environment = kubelet::inherited_environment(options.environment),
                      .cpu_millis = node.machine.cpus * 1000,
                      .memory_bytes = node.machine.memory_bytes,
                      .can_change_user = runner->isolation() == Isolation::kRoot,
                      .api_authority_pem = options.api_port == 0 ? "" : options.api_authority_pem},
             .state_directory = options.state_directory,
             .services =
                 [this](const Pod& pod) {
                   return services ? kubelet::service_variables(services->cache().all(), pod)
                                   : kubelet::Variables();
                 },
             .has_moved = [this] { names_changed(); }};
  if (options.on_event) {
    context.emit = [tell = options.on_event](const Pod& pod, bool is_warning,
                                             std::string_view reason, std::string message) {
      using Type = runtime::Event::Type;
      tell({.regarding = {.kind = &kube::kinds::kPod, .key = pod.meta.key, .uid = pod.meta.uid},
            .type = is_warning ? Type::kWarning : Type::kNormal,
            .reason = std::string(reason),
            .action = "Running",
            .message = std::move(message)});
    };
  }
}

Task<Result<>> Kubelet::Impl::register_node() {
  auto made = co_await options.client->create(kube::kinds::kNode, kubelet::node_object(node));
  if (!made && made.error().is(Reason::kAlreadyExists)) {
    // The machine may have changed since.
    Json labels = JsonObject{{"labels", kubelet::node_labels(node)}};
    made = co_await options.client->patch(kube::kinds::kNode, {.ns = "", .name = node.name},
                                          kube::PatchType::kMerge,
                                          JsonObject{{"metadata", std::move(labels)}});
  }
  if (!made) co_return fail_in("registering the node", made.error());
  co_await set_ready(true);
  co_await renew_lease();
  co_return Result<>();
}

Task<> Kubelet::Impl::set_ready(bool is_ready) {
  const kube::Where where{.ns = "", .name = node.name, .subresource = ""};
  auto known = co_await options.client->get(kube::kinds::kNode, where);
  const Json none;
  const Json* before = known ? find(*known, "status") : nullptr;
  Json status = kubelet::node_status(node, before == nullptr ? none : *before, is_ready,
                                     options.clock->now());
  auto written = co_await options.client->patch(
      kube::kinds::kNode, {.ns = "", .name = node.name, .subresource = "status"},
      kube::PatchType::kMerge, JsonObject{{"status", std::move(status)}});
  if (!written) {
    log_warning("the node's status could not be written", {{"why", written.error().message}});
  }
}

Task<> Kubelet::Impl::renew_lease() {
  const Json lease = kubelet::node_lease(node.name, options.clock->now());
  const kube::Where where{.ns = "kube-node-lease", .name = node.name, .subresource = ""};
  auto renewed = co_await options.client->patch(kube::kinds::kLease, where, kube::PatchType::kMerge,
                                                JsonObject{{"spec", *find(lease, "spec")}});
  if (!renewed && renewed.error().is(Reason::kNotFound)) {
    renewed = co_await options.client->create(kube::kinds::kLease, lease);
  }
  if (!renewed) log_debug("the node's lease", {{"why", renewed.error().message}});
}

Task<> Kubelet::Impl::heartbeat() {
  for (;;) {
    co_await options.clock->sleep(kHeartbeat);
    co_await renew_lease();
  }
}

Task<> Kubelet::Impl::serve_names() {
  ClusterNetwork* network = runner->network();
  if (network == nullptr || dns) co_return;
  auto sockets = co_await network->dns_sockets();
  if (!sockets) {
    log_warning("names of pods and services do not resolve", {{"why", sockets.error().message}});
    co_return;
  }
  const auto resolv = read_file("/etc/resolv.conf");
  dns = std::make_unique<dns::Server>(
      dns::Server::Options{.executor = options.executor,
                           .clock = options.clock,
                           .names = [this]() -> const dns::Table& { return names(); },
                           .upstreams = dns::parse_upstreams(resolv ? *resolv : "")});
  dns_sockets = std::move(*sockets);
  proxy = std::make_unique<kubelet::ServiceProxy>(options.executor, *options.clock, *runner);
  if (auto served = co_await outbound.serve(*network); !served) {
    log_warning("pods reach nothing beyond the cluster", {{"why", served.error().message}});
  }
}

std::vector<kubelet::PlacedPod> Kubelet::Impl::placed_pods() const {
  std::vector<kubelet::PlacedPod> out;
  for (auto& pod : informer->cache().all()) {
    const auto worker = workers.find(pod->uid());
    std::string address = worker == workers.end() ? "" : worker->second.worker->address();
    if (address.empty()) address = string_or(find(pod->status(), "podIP"));
    out.push_back({.pod = std::move(pod), .address = std::move(address)});
  }
  return out;
}

// Made anew for whoever asks: a process may ask for a name the moment it has come to be.
const dns::Table& Kubelet::Impl::names() {
  if (is_table_old && informer && informer->synced()) {
    is_table_old = false;
    table = kubelet::names_of(services->cache().all(), placed_pods(), groups);
  }
  return table;
}

void Kubelet::Impl::names_changed() {
  is_table_old = true;
  are_routes_old = true;
  renamed.notify_all();
}

Task<> Kubelet::Impl::keep_names() {
  for (;;) {
    while (!are_routes_old || !informer->synced()) co_await renamed.wait();
    are_routes_old = false;
    if (dns) dns->names_changed();
    // Not before: of pods that went on without us, none must hear that a name does not exist.
    if (dns_sockets) {
      dns->serve(std::move(dns_sockets->first), std::move(dns_sockets->second));
      dns_sockets.reset();
    }
    if (proxy) {
      co_await proxy->set(
          kubelet::routes_of(services->cache().all(), placed_pods(), options.api_port));
    }
    co_await options.clock->sleep(kNamesDelay);
  }
}

void Kubelet::Impl::follow_volumes() {
  sweeper = std::make_unique<kubelet::VolumeSweeper>(kubelet::VolumeSweeper::Options{
      .executor = options.executor,
      .client = options.client,
      .clock = options.clock,
      .random = options.random,
      .directory = options.state_directory + "/claims",
      .discard = [this](std::string path) { return runner->discard(std::move(path)); }});
  background.push_back(spawn(options.executor, sweeper->follow()));
  background.push_back(spawn(options.executor, sweeper->run()));
}

void Kubelet::Impl::follow() {
  services = std::make_unique<runtime::Informer<api::Service>>(
      *options.client, *options.clock, *options.random,
      runtime::InformerOptions{.kind = kube::kinds::kService},
      [](JsonView object) { return api::decode_service(object); });
  services->cache().add_handler([this](const api::Service* before, const api::Service* after) {
    if (before == nullptr) groups.note(*after, options.clock->instant());
    names_changed();
  });
  // Of all nodes and of none: names of pods that wait for a node are asked for, too.
  informer = std::make_unique<runtime::Informer<Pod>>(
      *options.client, *options.clock, *options.random,
      runtime::InformerOptions{.kind = kube::kinds::kPod}, kubelet::decode_pod);
  informer->cache().add_handler([this](const Pod* before, const Pod* after) {
    const bool is_lasting = before != nullptr && after != nullptr;
    on_pod(before, after);
    if (!is_lasting) groups.note(after == nullptr ? *before : *after, options.clock->instant());
    if (!is_lasting || kubelet::may_move(*before, *after)) names_changed();
  });
  // A pod's environment and names tell of services: so they are known before the first pod starts.
  services->on_synced([this] {
    if (!is_stopping) background.push_back(spawn(options.executor, informer->run()));
  });
  informer->on_synced([this] {
    changed.notify_all();
    names_changed();
  });
  background.push_back(spawn(options.executor, services->run()));
  background.push_back(spawn(options.executor, keep_names()));
  background.push_back(spawn(options.executor, heartbeat()));
  follow_volumes();
}

Task<> Kubelet::Impl::end_background() {
  for (Spawned& task : background) task.cancel();
  for (Spawned& task : background) co_await task.join();
  background.clear();
}

std::shared_ptr<PodWorker> Kubelet::Impl::find_pod(std::string_view ns, std::string_view name) {
  if (!informer) return nullptr;
  const auto pod = informer->cache().get({.ns = Interned(ns), .name = std::string(name)});
  const auto found = pod == nullptr ? workers.end() : workers.find(pod->uid());
  return found == workers.end() ? nullptr : found->second.worker;
}

void Kubelet::Impl::on_pod(const Pod* before, const Pod* after) {
  if (is_stopping) return;
  if (after == nullptr) {
    if (auto* worker = worker_of(before->uid())) worker->object_is_gone();
    return;
  }
  if (string_or(find(after->spec(), "nodeName")) != options.node_name) return;
  const std::string uid = after->uid();
  if (auto* worker = worker_of(uid)) {
    worker->update(*after);
    return;
  }
  const auto found = recovered.find(uid);
  if (found != recovered.end()) {
    // What has become of it since it was found again, only the runner has heard.
    for (PodStatus& now : runner->pods()) {
      if (now.id == uid) found->second = std::move(now);
    }
  }
  auto worker = std::make_shared<PodWorker>(context, *after,
                                            found == recovered.end() ? nullptr : &found->second);
  if (found != recovered.end()) recovered.erase(found);
  PodWorker& added = *worker;
  auto& slot = workers[uid];
  slot.worker = std::move(worker);
  slot.task = spawn(options.executor, work(*this, added, uid));
}

Task<> Kubelet::Impl::work(Impl& impl, PodWorker& worker, std::string uid) {
  co_await worker.run();
  impl.kept_logs.take(worker.pod());
  impl.ended.push_back(std::move(uid));
  impl.changed.notify_all();
}

// Pods of an earlier run whose objects are gone.
Task<> Kubelet::Impl::sweep_unknown() {
  auto unknown = std::move(recovered);
  recovered.clear();
  for (const auto& [uid, pod] : unknown) {
    log_info("a pod that the cluster no longer knows is removed", {{"pod", pod.note}});
    auto removed = co_await runner->remove(uid);
    if (!removed) log_warning("it stays behind", {{"why", removed.error().message}});
  }
}

Task<> Kubelet::Impl::end_workers() {
  for (auto& [uid, running] : workers) running.task.cancel();
  for (auto& [uid, running] : workers) {
    co_await running.task.join();
    co_await running.worker->end_care();
  }
  workers.clear();
  ended.clear();
}

Kubelet::Kubelet(KubeletOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Kubelet::~Kubelet() = default;

Task<Result<>> Kubelet::run() {
  Impl& impl = *impl_;
  impl.is_stopping = false;
  impl.is_running = true;
  Result<> done = co_await impl.open();
  if (done) {
    impl.describe_node();
    std::error_code ignored;
    impl.context.was_stopped = std::filesystem::remove(impl.stop_mark(), ignored);
    done = co_await impl.register_node();
  }
  if (done) {
    co_await impl.serve_names();
    impl.backend.set_runner(impl.runner.get());
    impl.follow();
    while (!impl.informer->synced() && !impl.is_stopping) co_await impl.changed.wait();
    if (!impl.is_stopping) co_await impl.sweep_unknown();
    sweep_logs();
    if (impl.options.on_ready && !impl.is_stopping) impl.options.on_ready();
    while (!impl.is_stopping) {
      for (const std::string& uid : std::exchange(impl.ended, {})) {
        const auto found = impl.workers.find(uid);
        if (found == impl.workers.end()) continue;
        co_await found->second.task.join();
        impl.workers.erase(found);
        impl.backend.containers_changed();
      }
      if (!impl.is_stopping && impl.ended.empty()) co_await impl.changed.wait();
    }
    impl.backend.set_runner(nullptr);
    co_await impl.end_background();
    if (impl.dns) impl.dns->release();
    if (impl.proxy) co_await impl.proxy->stop();
    co_await impl.outbound.stop();
    co_await impl.end_workers();
    impl.informer.reset();
    impl.services.reset();
    impl.sweeper.reset();
    co_await impl.set_ready(false);
  }
  impl.is_running = false;
  impl.changed.notify_all();
  co_return done;
}

Task<> Kubelet::stop() {
  impl_->is_stopping = true;
  impl_->changed.notify_all();
  while (impl_->is_running) co_await impl_->changed.wait();
}

Task<Result<>> Kubelet::remove_all() {
  if (auto opened = co_await impl_->open(); !opened) co_return opened;
  impl_->recovered.clear();
  impl_->dns.reset();
  impl_->proxy.reset();
  auto done = co_await impl_->runner->shut_down();
  impl_->runner.reset();
  std::ofstream(impl_->stop_mark()).close();
  co_return done;
}

void Kubelet::sweep_logs() {
  // Before the pods are known, all of them may be alive.
  if (!impl_->informer || !impl_->informer->synced()) return;
  std::set<std::string> living;
  for (const auto& [uid, running] : impl_->workers) living.insert(uid);
  impl_->kept_logs.sweep(living);
}

PodBackend& Kubelet::backend() {
  return impl_->backend;
}

std::vector<std::string> Kubelet::shortcomings() const {
  return impl_->runner ? impl_->runner->shortcomings() : std::vector<std::string>();
}

}  // namespace grapnel::local
