// What the tests with real processes share: a loop, a state directory of their own, a pod to write
// in one line.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "local/node/pod_runner.h"

namespace grapnel::local {

struct NodeTest : testing::Test {
  boost::asio::io_context loop;
  Executor executor = loop.get_executor();
  std::string state;
  std::unique_ptr<PodRunner> runner;
  std::vector<std::string> lost;
  int state_pid = 0;

  void SetUp() override {
    std::string name = geteuid() == 0 ? "/var/lib" : "/var/tmp";
    name += "/grapnel-node-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    state = name;
    mkdir_logs();
    open_runner();
  }
  void TearDown() override {
    if (runner) {
      const Result<> ended = run(runner->shut_down());
      EXPECT_TRUE(ended) << (ended ? "" : ended.error().message);
    }
    runner.reset();
    const std::string command = "rm -rf " + state;
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  void mkdir_logs() const {
    const std::string command = "mkdir -p " + state + "/logs";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  virtual PodRunnerOptions options() {
    return {.executor = executor,
            .state_directory = state,
            .on_lost = [this](const std::string& pod) { lost.push_back(pod); }};
  }
  void open_runner() {
    auto opened = run(PodRunner::open(options()));
    ASSERT_TRUE(opened) << opened.error().message;
    runner = std::move(*opened);
  }

  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    auto main = spawn(executor, keep(std::move(task), &result));
    loop.restart();
    const Instant deadline = system_clock().instant() + seconds(60);
    while (!main.done() && system_clock().instant() < deadline) loop.run_one_for(seconds(1));
    if (!result) {
      ADD_FAILURE() << "still waiting after 60 s";
      std::abort();
    }
    return std::move(*result);
  }
  template <class T>
  static Task<> keep(Task<T> task, std::optional<T>* into) {
    into->emplace(co_await std::move(task));
  }

  PodStatus start_pod(const std::string& name, PodSpec spec = {}) {
    spec.id = name;
    if (spec.hostname.empty()) spec.hostname = name;
    auto started = run(runner->start(std::move(spec)));
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
    return started ? *started : PodStatus{};
  }

  std::string log_path(const std::string& pod) const { return state + "/logs/" + pod + ".log"; }

  ContainerSpec shell(const std::string& pod, const std::string& script) const {
    return {.name = "main",
            .arguments = {"/bin/sh", "-c", script},
            .environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/root"},
            .log_path = log_path(pod)};
  }

  // The lines of a pod's log, without their stamps.
  std::string output(const std::string& pod) const {
    std::ifstream file(log_path(pod));
    std::string text;
    for (std::string line; std::getline(file, line);) {
      const size_t at = line.find(" F ");
      text += at == std::string::npos ? line : line.substr(at + 3);
      text += '\n';
    }
    return text;
  }

  // Runs a script in a pod of its own to its end.
  ContainerStatus run_script(const std::string& pod, const std::string& script) {
    start_pod(pod);
    auto started = run(runner->start_container(pod, shell(pod, script)));
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
    auto ended = run(runner->wait_for_end(pod, "main"));
    EXPECT_TRUE(ended) << (ended ? "" : ended.error().message);
    return ended ? *ended : ContainerStatus{};
  }
};

}  // namespace grapnel::local
