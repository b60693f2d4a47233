#include "runtime/metrics.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "base/log.h"
#include "runtime/manager.h"

namespace grapnel::runtime {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;

// The buckets of the originals: dashboards' quantiles depend on them.
const Histogram::BucketBoundaries kReconcileSeconds = {
    0.005, 0.01, 0.025, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6,
    0.7,   0.8,  0.9,   1.0,  1.25, 1.5,  1.75, 2,    2.5, 3,    3.5, 4,    4.5, 5,
    6,     7,    8,     9,    10,   15,   20,   25,   30,  40,   50,  60};
const Histogram::BucketBoundaries kQueueSeconds = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                                   1e-2, 1e-1, 1,    10,   100,  1000};
const Histogram::BucketBoundaries kRequestSeconds = {0.005, 0.025, 0.1, 0.25, 0.5, 1,
                                                     2,     4,     8,   15,   30,  60};
constexpr size_t kMostCounted = 10'000;
constexpr std::array kResults = {"success", "error", "requeue", "requeue_after"};

double seconds_of(Duration length) {
  return static_cast<double>(length.count()) / 1e6;
}

const char* result_of(ControllerObserver::End end) {
  using End = ControllerObserver::End;
  switch (end) {
    case End::kSuccess:
      return "success";
    case End::kLookAgain:
      return "requeue_after";
    case End::kWaiting:
      return "requeue";
    case End::kError:
    case End::kRefused:
    case End::kDefect:
      break;
  }
  return "error";
}

// The series of one controller and its queue.
struct Lane {
  std::map<std::string, Counter*> total;  // by result
  Counter* errors = nullptr;
  Counter* terminal_errors = nullptr;
  Counter* panics = nullptr;
  Histogram* time = nullptr;
  Gauge* active = nullptr;
  Gauge* depth = nullptr;
  Counter* adds = nullptr;
  Histogram* queue_duration = nullptr;
  Histogram* work_duration = nullptr;
  Gauge* unfinished = nullptr;
  Gauge* longest = nullptr;
  Counter* retries = nullptr;
};

prometheus::MetricFamily family_of(const CacheGauge& gauge) {
  prometheus::MetricFamily family{gauge.name, gauge.help, prometheus::MetricType::Gauge, {}};
  for (auto& sample : gauge.read()) {
    prometheus::ClientMetric metric;
    for (auto& [name, value] : sample.labels) {
      metric.label.push_back({std::move(name), std::move(value)});
    }
    metric.gauge.value = sample.value;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

// Made anew each time, so that what no longer keeps a controller waiting is not shown.
CacheGauge readiness_of(const Manager& manager) {
  return {.name = "grapnel_controller_ready",
          .help = "1 while a controller works, or would if this process led; 0 while it rests.",
          .read = [&manager] {
            std::vector<CacheGauge::Sample> samples;
            for (const auto& controller : manager.controllers()) {
              samples.push_back({.labels = {{"controller", controller->name()}},
                                 .value = manager.waits_of(*controller).empty() ? 1.0 : 0.0});
            }
            return samples;
          }};
}

CacheGauge waits_of(const Manager& manager) {
  const auto reason_of = [](const InformerBase& informer) -> std::string {
    if (informer.missing()) return "NotDefined";
    return informer.trouble() ? std::string(to_string(informer.trouble()->reason)) : "Listing";
  };
  return {.name = "grapnel_controller_waits",
          .help = "1 for each kind that a controller waits for, and why.",
          .read = [&manager, reason_of] {
            std::set<MetricLabels> waits;
            for (const auto& controller : manager.controllers()) {
              for (const InformerBase* informer : manager.waits_of(*controller)) {
                waits.insert({{"controller", controller->name()},
                              {"kind", std::string(informer->kind().kind)},
                              {"reason", reason_of(*informer)}});
              }
            }
            std::vector<CacheGauge::Sample> samples;
            for (const auto& labels : waits) samples.push_back({.labels = labels, .value = 1});
            return samples;
          }};
}

struct KindNumbers {
  double watches = 0;
  double objects = 0;
  double undecodable = 0;
  bool synced = true;
};

std::map<std::string, KindNumbers> kind_numbers(const Manager& manager) {
  std::map<std::string, KindNumbers> kinds;
  for (const auto& reflector : manager.reflectors()) {
    KindNumbers& numbers = kinds[std::string(reflector->kind().kind)];
    ++numbers.watches;
    numbers.objects += static_cast<double>(reflector->objects());
    numbers.undecodable += static_cast<double>(reflector->undecodable());
    numbers.synced = numbers.synced && reflector->synced();
  }
  return kinds;
}

struct ProcessNumbers {
  double resident = 0;
  double virtual_memory = 0;
  double cpu_seconds = 0;
  double open_files = 0;
};

ProcessNumbers process_numbers() {
  ProcessNumbers out;
  std::ifstream statm("/proc/self/statm");
  double size = 0;
  double resident = 0;
  statm >> size >> resident;
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  out.virtual_memory = size * page;
  out.resident = resident * page;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  for (const timeval& t : {usage.ru_utime, usage.ru_stime}) {
    out.cpu_seconds += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    (void)entry;
    ++out.open_files;
  }
  return out;
}

}  // namespace

struct Metrics::Impl {
  explicit Impl(std::string host_in) : host(std::move(host_in)) {}

  Family<Counter>& counter(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<Gauge>& gauge(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Family<Histogram>& histogram(const std::string& name, const std::string& help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }
  void remember(Family<Counter>& family, Counter& counter) {
    counted.emplace_back(&family, &counter);
    if (counted.size() <= kMostCounted) return;
    counted.front().first->Remove(counted.front().second);
    counted.pop_front();
  }
  // A counter of the system's, which is set and not counted up by us.
  void set_total(Counter& counter, double value) {
    if (value > counter.Value()) counter.Increment(value - counter.Value());
  }

  std::string host;
  prometheus::Registry registry;
  Manager* manager = nullptr;
  std::vector<Lane> lanes;
  std::map<std::string, size_t> lane_of;
  std::deque<std::pair<Family<Counter>*, Counter*>> counted;  // by planners, oldest first

  Family<Counter>& requests = counter("rest_client_requests_total",
                                      "Number of HTTP requests, by status code, method, and host.");
  Family<Histogram>& request_seconds = histogram("rest_client_request_duration_seconds",
                                                 "Request latency in seconds, by verb and host.");
  Family<Gauge>& leader =
      gauge("leader_election_master_status", "1 where this process is the leader of that lease.");
  Family<Gauge>& cached =
      gauge("grapnel_cache_objects", "Objects in the caches of each kind, once for each watch.");
  Family<Gauge>& cache_synced = gauge("grapnel_cache_synced", "1 while all of a kind is cached.");
  Family<Gauge>& watches = gauge("grapnel_watches", "Watches of each kind that caches are fed by.");
  Family<Counter>& undecodable = counter("grapnel_undecodable_objects_total",
                                         "Objects passed over because they do not decode.");
  Gauge& resident = gauge("process_resident_memory_bytes", "Resident memory size.").Add({});
  Gauge& virtual_memory = gauge("process_virtual_memory_bytes", "Virtual memory size.").Add({});
  Counter& cpu = counter("process_cpu_seconds_total", "User and system CPU time spent.").Add({});
  Gauge& open_files = gauge("process_open_fds", "Open file descriptors.").Add({});
  Gauge& max_files = gauge("process_max_fds", "The most file descriptors there may be.").Add({});
  Gauge& start_time =
      gauge("process_start_time_seconds", "Start of the process since the epoch.").Add({});
};

Metrics::Metrics(std::string host) : impl_(std::make_unique<Impl>(std::move(host))) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  impl_->max_files.Set(static_cast<double>(files.rlim_cur));
  // The process' folder in /proc is as old as the process.
  std::error_code error;
  const auto born = std::filesystem::last_write_time("/proc/self/stat", error);
  if (!error) {
    const auto wall = std::chrono::file_clock::to_sys(born);
    impl_->start_time.Set(
        std::floor(std::chrono::duration<double>(wall.time_since_epoch()).count()));
  }
  for (const auto* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    impl_->request_seconds.Add({{"verb", method}, {"host", impl_->host}}, kRequestSeconds);
  }
}

Metrics::~Metrics() = default;

void Metrics::follow(Manager& manager) {
  impl_->manager = &manager;
  for (const auto& controller : manager.controllers()) {
    add_controller(*controller);
    controller->set_observer(this);
  }
  manager.queue().set_observer(this);
  refresh();
}

void Metrics::add_controller(const Controller& controller) {
  const std::string& name = controller.name();
  Impl& i = *impl_;
  const Labels by_controller{{"controller", name}};
  const Labels by_queue{{"name", name}, {"controller", name}};
  Lane lane;
  auto& total = i.counter("controller_runtime_reconcile_total",
                          "Total number of reconciliations per controller.");
  for (const auto* result : kResults) {
    lane.total[result] = &total.Add({{"controller", name}, {"result", result}});
  }
  const auto counter = [&](const char* metric, const char* help, const Labels& labels) {
    return &i.counter(metric, help).Add(labels);
  };
  lane.errors = counter("controller_runtime_reconcile_errors_total",
                        "Total number of reconciliation errors per controller.", by_controller);
  lane.terminal_errors =
      counter("controller_runtime_terminal_reconcile_errors_total",
              "Total number of terminal reconciliation errors per controller.", by_controller);
  lane.panics = counter("controller_runtime_reconcile_panics_total",
                        "Total number of reconciliation panics per controller.", by_controller);
  counter("controller_runtime_reconcile_timeouts_total",
          "Total number of reconciliation timeouts per controller.", by_controller);
  lane.time = &i.histogram("controller_runtime_reconcile_time_seconds",
                           "Length of time per reconciliation per controller.")
                   .Add(by_controller, kReconcileSeconds);
  i.gauge("controller_runtime_max_concurrent_reconciles",
          "Maximum number of concurrent reconciles per controller.")
      .Add(by_controller)
      .Set(static_cast<double>(controller.at_once()));
  lane.active = &i.gauge("controller_runtime_active_workers",
                         "Number of currently used workers per controller.")
                     .Add(by_controller);
  lane.depth = &i.gauge("workqueue_depth", "Current depth of workqueue.")
                    .Add({{"name", name}, {"controller", name}, {"priority", "0"}});
  lane.adds =
      counter("workqueue_adds_total", "Total number of adds handled by workqueue.", by_queue);
  lane.queue_duration =
      &i.histogram("workqueue_queue_duration_seconds",
                   "How long in seconds an item stays in workqueue before being requested.")
           .Add(by_queue, kQueueSeconds);
  lane.work_duration = &i.histogram("workqueue_work_duration_seconds",
                                    "How long in seconds processing an item takes.")
                            .Add(by_queue, kQueueSeconds);
  lane.unfinished = &i.gauge("workqueue_unfinished_work_seconds",
                             "Seconds of work that is in progress and not yet observed.")
                         .Add(by_queue);
  lane.longest = &i.gauge("workqueue_longest_running_processor_seconds",
                          "How long the longest running processor has been running.")
                      .Add(by_queue);
  lane.retries =
      counter("workqueue_retries_total", "Total number of retries handled by workqueue.", by_queue);
  if (i.lanes.size() <= controller.lane()) i.lanes.resize(controller.lane() + 1);
  i.lanes[controller.lane()] = std::move(lane);
  i.lane_of[name] = controller.lane();
}

void Metrics::added(size_t lane) {
  impl_->lanes[lane].adds->Increment();
}
void Metrics::depth(size_t lane, size_t ready) {
  impl_->lanes[lane].depth->Set(static_cast<double>(ready));
}
void Metrics::taken(size_t lane, Duration waited) {
  impl_->lanes[lane].queue_duration->Observe(seconds_of(waited));
}
void Metrics::finished(size_t lane, Duration took) {
  impl_->lanes[lane].work_duration->Observe(seconds_of(took));
}
void Metrics::retried(size_t lane) {
  impl_->lanes[lane].retries->Increment();
}

void Metrics::planned(const std::string& controller, End end, Duration took) {
  const auto found = impl_->lane_of.find(controller);
  if (found == impl_->lane_of.end()) return;
  Lane& lane = impl_->lanes[found->second];
  const std::string result = result_of(end);
  lane.total[result]->Increment();
  if (result == "error") lane.errors->Increment();
  if (end == End::kRefused) lane.terminal_errors->Increment();
  if (end == End::kDefect) lane.panics->Increment();
  lane.time->Observe(seconds_of(took));
}

void Metrics::count(const Count& count) {
  try {
    auto& family = impl_->counter(count.metric, "Counted by a planner.");
    const Labels labels(count.labels.begin(), count.labels.end());
    const bool is_new = !family.Has(labels);
    Counter& counter = family.Add(labels);
    counter.Increment();
    if (is_new) impl_->remember(family, counter);
  } catch (const std::exception& e) {  // a name that Prometheus does not allow
    log_error("cannot count", {{"metric", count.metric}, {"why", e.what()}});
  }
}

void Metrics::observe_request(std::string_view method, int code, Duration took) {
  const std::string verb(method);
  const std::string status = code == 0 ? "<error>" : std::to_string(code);
  impl_->requests.Add({{"code", status}, {"method", verb}, {"host", impl_->host}}).Increment();
  impl_->request_seconds.Add({{"verb", verb}, {"host", impl_->host}}, kRequestSeconds)
      .Observe(seconds_of(took));
}

// What is measured when somebody asks.
void Metrics::refresh() {
  Impl& i = *impl_;
  const ProcessNumbers process = process_numbers();
  i.resident.Set(process.resident);
  i.virtual_memory.Set(process.virtual_memory);
  i.open_files.Set(process.open_files);
  i.set_total(i.cpu, process.cpu_seconds);
  if (i.manager == nullptr) return;
  for (size_t lane = 0; lane < i.lanes.size(); ++lane) {
    const auto unfinished = i.manager->queue().unfinished(lane);
    i.lanes[lane].unfinished->Set(seconds_of(unfinished.sum));
    i.lanes[lane].longest->Set(seconds_of(unfinished.longest));
    i.lanes[lane].active->Set(static_cast<double>(i.manager->queue().processing(lane)));
  }
  for (const auto& [name, numbers] : kind_numbers(*i.manager)) {
    const Labels kind{{"kind", name}};
    i.cached.Add(kind).Set(numbers.objects);
    i.cache_synced.Add(kind).Set(numbers.synced ? 1 : 0);
    i.watches.Add(kind).Set(numbers.watches);
    i.set_total(i.undecodable.Add(kind), numbers.undecodable);
  }
  if (const Lease* lease = i.manager->lease()) {
    i.leader.Add({{"name", lease->name()}}).Set(lease->leading() ? 1 : 0);
  }
}

std::string Metrics::text() {
  refresh();
  auto families = impl_->registry.Collect();
  if (impl_->manager != nullptr) {
    families.push_back(family_of(readiness_of(*impl_->manager)));
    families.push_back(family_of(waits_of(*impl_->manager)));
  }
  if (impl_->manager != nullptr && impl_->manager->working()) {
    for (const auto& gauge : impl_->manager->gauges()) families.push_back(family_of(gauge));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace grapnel::runtime
