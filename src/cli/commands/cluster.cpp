// grapnel up, down, status, env: the laptop cluster as a whole.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <thread>

#include "base/log.h"
#include "base/strings.h"
#include "cli/background.h"
#include "cli/commands.h"
#include "cli/local_cluster.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/start_report.h"
#include "kube/connect.h"
#include "operators/experiment/process.h"

namespace grapnel::cli {
namespace {

Task<int> serve(Executor executor, ClusterPaths paths, ClusterOptions options,
                std::string work_directory) {
  StartReporter starter(options.report_fd);
  LocalCluster cluster(executor, system_clock(),
                       {.paths = paths,
                        .work_directory = std::move(work_directory),
                        .oversubscribe = options.oversubscribe,
                        .with_operator = !options.without_operator,
                        .port = options.port,
                        .on_warning = [&](const std::string& text) { starter.warn(text); }});
  Interrupts interrupts(executor);
  const auto started = co_await cluster.start();
  if (!started) {
    starter.failed(started.error().message);
    co_return report(started.error(), kFailed);
  }
  starter.ready();
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

std::string count_of(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// What runs on it, in words; "" when nothing does, or nobody says.
std::string words_for(const Json& experiments, const Json& pods) {
  std::vector<std::string> running;
  for (const Json& item : experiments.at("items").as_array()) {
    if (at(item, "status", "endTime") != nullptr) continue;
    running.emplace_back(string_or(at(item, "metadata", "name")));
  }
  const auto others =
      static_cast<size_t>(std::ranges::count_if(pods.at("items").as_array(), [](const Json& pod) {
        return string_or(at(pod, "status", "phase")) == "Running" &&
               at(pod, "metadata", "labels", experiment::kExperimentLabel) == nullptr;
      }));
  std::string words;
  if (!running.empty()) {
    words = count_of(running.size(), "experiment") + " (" + join(running, ", ") + ")";
  }
  if (others > 0) {
    words +=
        (words.empty() ? "" : " and ") + count_of(others, running.empty() ? "pod" : "other pod");
  }
  return words;
}

Task<> ask_what_runs(kube::Client& client, std::string& words) {
  const auto experiments = co_await client.list(kube::kinds::kExperiment, {});
  const auto pods = co_await client.list(kube::kinds::kPod, {});
  const Json none = JsonObject{{"items", JsonArray()}};
  words = words_for(experiments ? *experiments : none, pods ? *pods : none);
}

// Told before it is ended. A cluster that does not answer is ended all the same.
Task<int> tell_what_runs(Executor executor, ClusterPaths paths, std::string name) {
  auto connection = kube::connect(executor, {.kubeconfig = paths.kubeconfig().string()}, {});
  if (!connection) co_return kFailed;
  std::string words;
  co_await with_deadline(system_clock(), system_clock().instant() + seconds(3),
                         ask_what_runs(*connection->client, words));
  if (!words.empty()) {
    std::cout << "cluster '" << name << "' stops with what runs on it: " << words << std::endl;
  }
  co_return kOk;
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
  const auto here = working_directory();
  if (!here) return report(here.error(), kUsage);
  return run_loop([&](Executor executor) { return serve(executor, *paths, options, *here); });
}

int down(const ClusterOptions& options) {
  const auto paths = paths_of_cluster(options.name);
  if (!paths) return report(paths.error(), kUsage);
  const auto pid = running_pid(*paths);
  if (!pid) {
    std::cout << "cluster '" << options.name << "' is not up\n";
    return kOk;
  }
  run_loop([&](Executor executor) { return tell_what_runs(executor, *paths, options.name); });
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
  const auto paths = paths_of_cluster(options.name);
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
  const auto paths = paths_of_cluster(options.name);
  if (!paths) return report(paths.error(), kUsage);
  std::cout << "export KUBECONFIG=" << paths->kubeconfig().string() << "\n";
  return kOk;
}

}  // namespace grapnel::cli
