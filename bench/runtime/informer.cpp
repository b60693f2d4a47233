// Our informer and controller on pods, to be measured beside client-go's: prints one JSON line when
// its cache is synced, and "VERSION NANOSECONDS" for each pod that is planned after that, until
// SIGTERM.
#include <malloc.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdio>

#include "api/pod.h"
#include "base/async.h"
#include "base/log.h"
#include "base/random.h"
#include "kube/connect.h"
#include "kube/kind.h"
#include "runtime/manager.h"

using namespace grapnel;

namespace {

namespace asio = boost::asio;

// Without pages of the program itself, which come and go.
long rss_kb() {
  long resident = 0;
  long of_files = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %ld %ld", &resident, &of_files) != 2) resident = of_files = 0;
    std::fclose(file);
  }
  return (resident - of_files) * ::sysconf(_SC_PAGESIZE) / 1024;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// CLOCK_MONOTONIC, which other processes can compare with.
long long monotonic() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

int measure(const char* kubeconfig) {
  log_setup(LogFormat::kText, LogLevel::kWarning);
  asio::io_context loop;
  auto connection = kube::connect(loop.get_executor(), {.kubeconfig = kubeconfig}, {});
  if (!connection) {
    std::fprintf(stderr, "%s\n", connection.error().message.c_str());
    return 1;
  }
  Random random(1);
  runtime::Manager manager(loop.get_executor(), *connection->client, system_clock(), random, {});
  auto& pods = manager.add_informer<api::Pod>({.kind = kube::kinds::kPod}, [](JsonView object) {
    return api::decode_pod(
        object,
        {.all_labels = false,
         .labels = {"jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/replicatedjob-name",
                    "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"}});
  });
  bool reported = false;
  auto& controller = manager.add_controller(
      {.name = "bench",
       .kind = &kube::kinds::kPod,
       .plan = [&](const kube::Key& key, Time,
                   const runtime::Refusal*) -> std::optional<runtime::Plan> {
         const auto pod = pods.cache().get(key);
         if (reported && pod) {
           std::printf("%llu %lld\n", static_cast<unsigned long long>(pod->meta.resource_version),
                       monotonic());
         }
         return std::nullopt;
       }});
  manager.watch(pods, controller);

  const long before = rss_kb();
  const long long begin = monotonic();
  auto running = spawn(loop.get_executor(),
                       [](runtime::Manager& m) -> Task<> { (void)co_await m.run(); }(manager));
  asio::signal_set stop(loop, SIGTERM, SIGINT);
  stop.async_wait([&](auto, auto) { manager.stop(); });

  while (!pods.synced() && loop.run_one() > 0) {
  }
  const double cpu = cpu_seconds();
  const double wall = double(monotonic() - begin) / 1e9;
  const long synced = rss_kb();
  // The first list's own plans end first.
  const size_t lane = controller.lane();
  while (manager.queue().ready(lane) + manager.queue().processing(lane) > 0 && loop.run_one() > 0) {
  }
  loop.run_for(std::chrono::seconds(1));
  std::printf(
      "{\"objects\":%zu,\"rss_before_kb\":%ld,\"rss_synced_kb\":%ld,\"rss_kb\":%ld,"
      "\"heap_kb\":%zu,\"cpu_s\":%.3f,\"wall_s\":%.3f}\n",
      pods.cache().size(), before, synced, rss_kb(), ::mallinfo2().uordblks / 1024, cpu, wall);
  std::fflush(stdout);
  reported = true;
  loop.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_informer KUBECONFIG\n");
    return 2;
  }
  return measure(argv[1]);
}
