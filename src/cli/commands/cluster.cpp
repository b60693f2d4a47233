// grapnel up, down, status, env: the laptop cluster as a whole.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/log.h"
#include "cli/background.h"
#include "cli/commands.h"
#include "cli/local_cluster.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/output.h"
#include "cli/paths.h"

namespace grapnel::cli {
namespace {

Task<int> serve(Executor executor, ClusterPaths paths, ClusterOptions options) {
  LocalCluster cluster(executor, system_clock(),
                       {.paths = paths,
                        .work_directory = std::filesystem::current_path().string(),
                        .oversubscribe = options.oversubscribe,
                        .with_operator = !options.without_operator,
                        .port = options.port});
  Interrupts interrupts(executor);
  const auto started = co_await cluster.start();
  if (!started) co_return report(started.error(), kFailed);
  log_info("the laptop cluster is up", {{"kubeconfig", paths.kubeconfig().string()}});

  int code = kOk;
  Signal over(executor);
  std::optional<Error> failure;
  auto watch = spawn(executor, [](LocalCluster& c, std::optional<Error>& out, Signal& s) -> Task<> {
    out = co_await c.failed();
    s.notify_all();
  }(cluster, failure, over));
  auto stop = spawn(executor, [](Interrupts& i, Signal& s) -> Task<> {
    co_await i.next();
    s.notify_all();
  }(interrupts, over));
  if (!failure && interrupts.count() == 0) co_await over.wait();
  if (failure) code = report(*failure, kFailed);
  watch.cancel();
  stop.cancel();
  co_await watch.join();
  co_await stop.join();
  co_await cluster.end_pods();
  co_await cluster.stop();
  co_return code;
}

}  // namespace

int up(const ClusterOptions& options) {
  const auto paths = cluster_paths(options.name);
  if (!paths) return report(paths.error(), kUsage);
  if (const auto pid = running_pid(*paths)) {
    std::cout << "cluster '" << options.name << "' is up already (pid " << *pid << ")\n";
    return kOk;
  }
  if (options.detached) {
    const auto started = start_in_background(*paths, options);
    if (!started) return report(started.error(), kFailed);
    std::cout << "cluster '" << options.name << "' is up (pid " << *started << ")\n"
              << "  export KUBECONFIG=" << paths->kubeconfig().string() << "\n";
    return kOk;
  }
  return run_loop([&](Executor executor) { return serve(executor, *paths, options); });
}

int down(const ClusterOptions& options) {
  const auto paths = cluster_paths(options.name);
  if (!paths) return report(paths.error(), kUsage);
  const auto pid = running_pid(*paths);
  if (!pid) {
    std::cout << "cluster '" << options.name << "' is not up\n";
    return kOk;
  }
  ::kill(*pid, SIGTERM);
  constexpr auto kLongest = std::chrono::seconds(60);
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  while (running_pid(*paths)) {
    if (std::chrono::steady_clock::now() > deadline) {
      std::cerr << "cluster '" << options.name << "' (pid " << *pid
                << ") has not ended after 60 s; its log is " << paths->log().string() << "\n";
      return kFailed;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::cout << "cluster '" << options.name << "' is down\n";
  return kOk;
}

int cluster_status(const ClusterOptions& options, Output output) {
  const auto paths = cluster_paths(options.name);
  if (!paths) return report(paths.error(), kUsage);
  const auto pid = running_pid(*paths);
  if (is_document(output)) {
    JsonObject status{{"name", options.name},
                      {"running", pid.has_value()},
                      {"kubeconfig", paths->kubeconfig().string()}};
    if (pid) status["pid"] = *pid;
    print_document(status, output);
  } else if (output == Output::kName) {
    std::cout << options.name << "\n";
  } else if (pid) {
    std::cout << "cluster '" << options.name << "' is up (pid " << *pid << ")\n"
              << "  kubeconfig  " << paths->kubeconfig().string() << "\n"
              << "  log         " << paths->log().string() << "\n";
  } else {
    std::cout << "cluster '" << options.name << "' is not up; start it with `grapnel up -d`\n";
  }
  return pid ? kOk : kFailed;
}

int print_env(const ClusterOptions& options) {
  const auto paths = cluster_paths(options.name);
  if (!paths) return report(paths.error(), kUsage);
  std::cout << "export KUBECONFIG=" << paths->kubeconfig().string() << "\n";
  return kOk;
}

}  // namespace grapnel::cli
