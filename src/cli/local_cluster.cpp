#include "cli/local_cluster.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "api/experiment.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/cluster_identity.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "controllers/admission.h"
#include "controllers/controllers.h"
#include "kube/credentials.h"
#include "local/apiserver/server.h"
#include "local/builtin/controllers.h"
#include "local/kubelet/kubelet.h"
#include "operators/experiment/process.h"
#include "runtime/events.h"
#include "runtime/informer.h"
#include "runtime/manager.h"

extern char** environ;

namespace grapnel::cli {
namespace {

// Holds the pid file for as long as it lives: one process for each cluster.
class PidFile {
 public:
  ~PidFile() {
    if (file_) ::unlink(path_.c_str());
  }
  Result<> hold(const ClusterPaths& paths) {
    auto held = hold_pid_file(paths);
    if (!held) return fail(held.error());
    file_ = std::move(*held);
    path_ = paths.pid();
    return {};
  }

 private:
  std::filesystem::path path_;
  Fd file_;
};

std::string kubeconfig_text(const std::string& url, const ClusterIdentity& identity) {
  const std::string authority = base64_encode(identity.authority.certificate_pem);
  return to_pretty_text(JsonObject{
             {"apiVersion", "v1"},
             {"kind", "Config"},
             {"current-context", "grapnel"},
             {"clusters", JsonArray{JsonObject{
                              {"name", "grapnel"},
                              {"cluster", JsonObject{{"server", url},
                                                     {"certificate-authority-data", authority}}}}}},
             {"users", JsonArray{JsonObject{{"name", "grapnel"},
                                            {"user", JsonObject{{"token", identity.token}}}}}},
             {"contexts", JsonArray{JsonObject{{"name", "grapnel"},
                                               {"context", JsonObject{{"cluster", "grapnel"},
                                                                      {"user", "grapnel"},
                                                                      {"namespace", "default"}}}}}},
         }) +
         "\n";
}

// Our kinds, as they are in this version of the program.
Task<Result<>> install_crds(kube::Client& client) {
  for (const Json& crd : controllers::crds()) {
    const std::string name(string_or(at(crd, "metadata", "name")));
    const auto applied =
        co_await client.patch(kube::kinds::kCustomResourceDefinition, {.name = name},
                              kube::PatchType::kApply, crd, {.force = true});
    if (!applied) co_return fail_in("installing " + name, applied.error());
  }
  co_return Result<>{};
}

// The rules of our kinds, which hold for `kubectl apply` as they do on a cluster with our webhooks.
local::ResidentWebhooks our_webhooks(runtime::Admission& admission) {
  controllers::add_admissions(admission);
  const std::string here = "grapnel";
  return {.mutating = controllers::mutating_webhooks(here, here),
          .validating = controllers::validating_webhooks(here, here),
          .admission = &admission};
}

// Clients and pods may open thousands; what a shell gives is often 1,024.
void raise_open_file_limit() {
  constexpr rlim_t kEnough = 1 << 16;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= kEnough) return;
  files.rlim_cur = std::min(files.rlim_max, kEnough);
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

struct LocalCluster::Impl {
  Impl(Executor executor_in, Clock& clock_in, LocalClusterOptions options_in)
      : executor(executor_in),
        clock(clock_in),
        options(std::move(options_in)),
        random(static_cast<uint64_t>(clock_in.now().time_since_epoch().count())),
        changed(executor_in) {}

  void run(std::string_view part, Task<Result<>> task) {
    parts.push_back(spawn(executor, [](Impl* self, std::string name, Task<Result<>> t) -> Task<> {
      const auto ended = co_await std::move(t);
      if (!ended && !self->failure) self->failure = fail_in(name, ended.error()).value();
      self->changed.notify_all();
    }(this, std::string(part), std::move(task))));
  }

  void follow_experiments() {
    experiments = std::make_unique<runtime::Informer<api::Experiment>>(
        *client, clock, random, runtime::InformerOptions{.kind = kube::kinds::kExperiment},
        [](JsonView object) { return api::decode_resource<api::Experiment>(object); });
    experiments->cache().add_handler([this](const api::Experiment*, const api::Experiment* after) {
      if (after == nullptr) kubelet->sweep_logs();
    });
    experiments->on_synced([this] { kubelet->sweep_logs(); });
    following_experiments = spawn(executor, experiments->run());
  }

  bool has_experiment_of(const Json& pod) const {
    const auto name = string_or(at(pod, "metadata", "labels", experiment::kExperimentLabel));
    if (name.empty() || !experiments) return false;
    if (!experiments->synced()) return true;  // nobody knows yet
    const auto ns = string_or(at(pod, "metadata", "namespace"));
    return experiments->cache().get({Interned(ns), std::string(name)}) != nullptr;
  }

  // So that who followed the cluster finds it again after a restart.
  Result<> keep_port(ClusterIdentity& identity) {
    const uint16_t before = std::exchange(identity.port, server.port());
    if (before == identity.port) return {};
    if (before != 0 && options.port == 0) {
      warn(fmt::format("port {} is taken: the cluster's API is at port {} from now on", before,
                       identity.port));
    }
    return keep_identity(options.paths, identity);
  }

  void serve_no_more() const {
    std::error_code ignored;
    std::filesystem::remove(options.paths.kubeconfig(), ignored);
  }

  void warn(const std::string& text) const {
    log_warning(text);
    if (options.on_warning) options.on_warning(text);
  }

  Executor executor;
  Clock& clock;
  LocalClusterOptions options;
  Random random;
  PidFile pid_file;
  runtime::Admission admission;  // of our kinds
  local::ApiServer server;
  std::unique_ptr<kube::Client> client;
  std::unique_ptr<local::BuiltinControllers> builtin;
  std::unique_ptr<runtime::Manager> ours;
  std::unique_ptr<runtime::EventRecorder> events;  // of the node
  // Logs of pods that are gone are kept for as long as their experiment is there.
  std::unique_ptr<runtime::Informer<api::Experiment>> experiments;
  Spawned following_experiments;
  Spawned sending_events;
  Spawned settling;
  std::unique_ptr<local::Kubelet> kubelet;
  std::vector<Spawned> parts;
  std::optional<Error> failure;
  bool node_ready = false;
  Signal changed;
};

LocalCluster::LocalCluster(Executor executor, Clock& clock, LocalClusterOptions options)
    : impl_(std::make_unique<Impl>(executor, clock, std::move(options))) {}
LocalCluster::~LocalCluster() = default;

Task<Result<>> LocalCluster::start() {
  auto& s = *impl_;
  raise_open_file_limit();
  const auto& paths = s.options.paths;
  if (auto held = s.pid_file.hold(paths); !held) co_return held;
  auto identity = identity_of_cluster(paths, s.clock.now());
  if (!identity) co_return fail(identity.error());
  local::ResidentWebhooks residents;
  if (s.options.with_operator) residents = our_webhooks(s.admission);
  const auto url = co_await s.server.start(s.executor, s.clock,
                                           {.data_dir = paths.data().string(),
                                            .port = s.options.port,
                                            .preferred_port = identity->port,
                                            .token = identity->token,
                                            .certificate_pem = identity->server.certificate_pem,
                                            .key_pem = identity->server.key_pem,
                                            .residents = std::move(residents)});
  if (!url) co_return fail_in("the API server", url.error());
  if (auto kept = s.keep_port(*identity); !kept) co_return kept;
  const std::string config = kubeconfig_text(*url, *identity);
  s.client = std::make_unique<kube::Client>(
      s.server.transport(),
      kube::make_credentials({{"Authorization", "Bearer " + identity->token}}, nullptr),
      kube::ClientOptions{.server = *url, .clock = &s.clock});
  if (s.options.with_operator) {
    if (auto installed = co_await install_crds(*s.client); !installed) co_return installed;
  }

  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  s.events = std::make_unique<runtime::EventRecorder>(
      s.executor, *s.client, s.clock,
      runtime::EventOptions{.controller = "kubelet", .instance = "laptop"});
  s.sending_events = spawn(s.executor, s.events->run());
  s.kubelet = std::make_unique<local::Kubelet>(local::KubeletOptions{
      .executor = s.executor,
      .client = s.client.get(),
      .clock = &s.clock,
      .random = &s.random,
      .state_directory = paths.node().string(),
      .work_directory = s.options.work_directory,
      .oversubscribe = s.options.oversubscribe,
      .environment = std::move(environment),
      .api_port = s.server.port(),
      .api_authority_pem = identity->authority.certificate_pem,
      .on_ready =
          [&s] {
            s.node_ready = true;
            s.changed.notify_all();
          },
      .on_event = [&s](const runtime::Event& event) { s.events->record(event); },
      .wants_logs = [&s](const Json& pod) { return s.has_experiment_of(pod); },
  });
  s.server.set_pod_backend(&s.kubelet->backend());
  if (s.options.with_operator) s.follow_experiments();
  s.run("the node", s.kubelet->run());
  s.builtin = std::make_unique<local::BuiltinControllers>(
      s.executor, *s.client, s.clock, s.random,
      local::BuiltinOptions{.authority_pem = identity->authority.certificate_pem,
                            .volume_directory = paths.node().string() + "/claims"});
  s.run("the built-in controllers", s.builtin->run());
  if (s.options.with_operator) {
    s.ours = std::make_unique<runtime::Manager>(
        s.executor, *s.client, s.clock, s.random,
        runtime::ManagerOptions{.events = runtime::EventOptions{}});
    controllers::add_controllers(*s.ours, {.folders = (paths.root / "experiments").string()});
    s.run("the controllers", s.ours->run());
  }

  while (!s.node_ready && !s.failure) co_await s.changed.wait();
  if (s.failure) co_return fail(*s.failure);
  for (const auto& shortcoming : s.kubelet->shortcomings()) s.warn(shortcoming);
  if (s.options.oversubscribe != 1) {
    s.warn(fmt::format("pods may ask for {} times the CPUs and memory that this machine has",
                       s.options.oversubscribe));
  }
  s.settling = spawn(s.executor, give_back_after_start(s.clock));
  // Its presence tells others that we serve.
  co_return write_private_file(paths.kubeconfig(), config);
}

Task<Error> LocalCluster::failed() {
  while (!impl_->failure) co_await impl_->changed.wait();
  co_return *impl_->failure;
}

Task<> LocalCluster::end_pods() {
  auto& s = *impl_;
  s.serve_no_more();
  if (!s.kubelet) co_return;
  co_await s.kubelet->stop();
  if (const auto removed = co_await s.kubelet->remove_all(); !removed) {
    log_error("not all pods could be ended", {{"error", removed.error().message}});
  }
}

Task<> LocalCluster::stop() {
  auto& s = *impl_;
  s.serve_no_more();
  if (s.ours) s.ours->stop();
  if (s.builtin) s.builtin->stop();
  if (s.kubelet) co_await s.kubelet->stop();
  s.following_experiments.cancel();
  co_await s.following_experiments.join();
  for (Spawned* task : {&s.sending_events, &s.settling}) {
    task->cancel();
    co_await task->join();
  }
  for (auto& part : s.parts) co_await part.join();
  s.parts.clear();
  s.server.set_pod_backend(nullptr);
  co_await s.server.stop();
}

}  // namespace grapnel::cli
