// A cluster of one node for tests: API server in memory, kubelet, real pods. It leaves nothing
// behind.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/async.h"
#include "document/yaml.h"
#include "kube/client.h"
#include "local/apiserver/server.h"
#include "local/kubelet/kubelet.h"

extern char** environ;

namespace grapnel::local {

struct KubeletTest : testing::Test {
  boost::asio::io_context loop;
  Executor executor = loop.get_executor();
  Random random{7};
  std::string state;
  ApiServer server;
  std::unique_ptr<kube::Client> client;
  std::unique_ptr<Kubelet> kubelet;
  Spawned running;
  bool is_ready = false;
  Result<> ended;

  void SetUp() override {
    char name[] = "/var/lib/grapnel-kubelet-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    state = name;
    auto url = run(server.start(executor, system_clock(), {}));
    ASSERT_TRUE(url) << url.error().message;
    client = std::make_unique<kube::Client>(http::make_transport(executor, {}), nullptr,
                                            kube::ClientOptions{.server = *url});
    start_kubelet();
  }
  void TearDown() override {
    if (kubelet) {
      run_void(kubelet->stop());
      auto removed = run(kubelet->remove_all());
      EXPECT_TRUE(removed) << (removed ? "" : removed.error().message);
    }
    run_void(running.join());
    server.set_pod_backend(nullptr);
    kubelet.reset();
    client.reset();
    run_void(server.stop());
    const std::string command = "rm -rf " + state;
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

  void start_kubelet() {
    is_ready = false;
    std::vector<std::string> environment;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      environment.emplace_back(*variable);
    }
    kubelet = std::make_unique<Kubelet>(KubeletOptions{.executor = executor,
                                                       .client = client.get(),
                                                       .random = &random,
                                                       .state_directory = state,
                                                       .work_directory = "/",
                                                       .environment = environment,
                                                       .on_ready = [this] { is_ready = true; }});
    server.set_pod_backend(&kubelet->backend());
    running = spawn(executor, keep(kubelet->run(), &ended));
    until([&] { return is_ready || running.done(); });
    ASSERT_TRUE(is_ready) << (ended ? "" : ended.error().message);
  }
  // As when the program ends and starts anew; pods go on meanwhile.
  void restart_kubelet() {
    run_void(kubelet->stop());
    run_void(running.join());
    server.set_pod_backend(nullptr);
    kubelet.reset();
    start_kubelet();
  }

  static Task<> keep(Task<Result<>> task, Result<>* into) { *into = co_await std::move(task); }
  template <class T>
  static Task<> store(Task<T> task, std::optional<T>* into) {
    into->emplace(co_await std::move(task));
  }
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    auto main = spawn(executor, store(std::move(task), &result));
    until([&] { return main.done(); });
    if (!result) std::abort();
    return std::move(*result);
  }
  void run_void(Task<> task) {
    auto main = spawn(executor, std::move(task));
    until([&] { return main.done(); });
  }
  bool until(const std::function<bool()>& is_true, Duration patience = seconds(60)) {
    const Instant deadline = system_clock().instant() + patience;
    loop.restart();
    while (!is_true()) {
      if (system_clock().instant() > deadline) {
        ADD_FAILURE() << "still waiting";
        return false;
      }
      loop.run_one_for(milliseconds(50));
    }
    return true;
  }

  Json create(const kube::Kind& kind, const std::string& yaml) {
    auto documents = parse_yaml(yaml);
    EXPECT_TRUE(documents) << (documents ? "" : documents.error().message);
    auto made = run(client->create(kind, documents ? documents->at(0).value : Json()));
    EXPECT_TRUE(made) << (made ? "" : made.error().message) << "\n" << yaml;
    return made ? *made : Json();
  }
  // `rest` is the pod's spec, at the left margin.
  Json create_pod(const std::string& name, const std::string& rest,
                  const std::string& labels = "{}") {
    std::string spec;
    for (const auto& line : lines(rest)) spec += "  " + line + "\n";
    return create(kube::kinds::kPod, "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
                                         ", namespace: default, labels: " + labels +
                                         "}\nspec:\n  nodeName: laptop\n" + spec);
  }
  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> out;
    size_t start = 0;
    while (start < text.size()) {
      size_t end = text.find('\n', start);
      if (end == std::string::npos) end = text.size();
      out.push_back(text.substr(start, end - start));
      start = end + 1;
    }
    return out;
  }

  Result<Json> get_pod(const std::string& name) {
    return run(client->get(kube::kinds::kPod, {.ns = "default", .name = name}));
  }
  Json status_of(const std::string& name) {
    auto pod = get_pod(name);
    const Json* status = pod ? find(*pod, "status") : nullptr;
    return status == nullptr ? Json() : *status;
  }
  std::string phase_of(const std::string& name) {
    const Json status = status_of(name);
    return std::string(string_or(find(status, "phase")));
  }
  bool wait_for_phase(const std::string& name, const std::string& phase,
                      Duration patience = seconds(60)) {
    const Instant deadline = system_clock().instant() + patience;
    while (phase_of(name) != phase) {
      if (system_clock().instant() > deadline) {
        ADD_FAILURE() << name << " is not " << phase << ": " << to_text(status_of(name));
        return false;
      }
      run_void(system_clock().sleep(milliseconds(20)));
    }
    return true;
  }
  bool wait_until_gone(const std::string& name, Duration patience = seconds(60)) {
    const Instant deadline = system_clock().instant() + patience;
    while (get_pod(name)) {
      if (system_clock().instant() > deadline) {
        ADD_FAILURE() << name << " is still there";
        return false;
      }
      run_void(system_clock().sleep(milliseconds(20)));
    }
    return true;
  }
  static Json container(const Json& status, size_t index = 0,
                        std::string_view list = "containerStatuses") {
    const Json* all = find(status, list);
    if (all == nullptr || !all->is_array() || all->get_array().size() <= index) return {};
    return all->get_array()[index];
  }

  static Task<std::string> read_all(kube::Client& client, std::string pod,
                                    kube::LogOptions options) {
    auto stream = co_await client.logs({.ns = "default", .name = pod}, options);
    if (!stream) co_return "error: " + stream.error().message;
    std::string out;
    for (;;) {
      auto piece = co_await (*stream)->read();
      if (!piece) co_return out + "cut: " + piece.error().message;
      if (piece->empty()) co_return out;
      out += *piece;
    }
  }
  std::string logs(const std::string& pod, kube::LogOptions options = {}) {
    return run(read_all(*client, pod, std::move(options)));
  }
};

}  // namespace grapnel::local
