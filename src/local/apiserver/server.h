// The laptop cluster's API server, ready to start:
//
//   ApiServer server;
//   auto url = co_await server.start(executor, clock, {.data_dir = dir, .token = token});
//   … kube::Client with *url and the token …
//   co_await server.stop();
//
// It is reached through HTTP, or by the same messages without a connection. The namespaces every
// cluster has are there when start() returns.
#pragma once

#include <memory>
#include <string>

#include "base/async.h"
#include "base/result.h"
#include "http/client.h"
#include "local/apiserver/admission/resident.h"
#include "local/apiserver/pod_backend.h"

namespace grapnel::local {

struct ApiServerOptions {
  std::string data_dir;  // "": in memory only; made when missing, private to the user
  bool listen = true;    // false: it is reached through transport() alone
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: the preferred one if it is free, else any
  uint16_t preferred_port = 0;
  std::string token;  // "": everyone who can connect may do everything (tests)
  // PEM texts; empty: plain HTTP.
  std::string certificate_pem;
  std::string key_pem;
  std::string service_range = "10.96.0.0/16";
  size_t history_bytes = 16UL << 20;
  ResidentWebhooks residents;
  uint64_t seed = 0;  // of uids and generated names; 0: from the system
};

class ApiServer {
 public:
  ApiServer();
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // The URL it serves, or "" when it does not listen. The executor and the clock outlive the
  // server.
  Task<Result<std::string>> start(Executor executor, Clock& clock, ApiServerOptions options);
  uint16_t port() const;
  // For clients in this program; refuses everything once the server has stopped.
  std::shared_ptr<http::Transport> transport() const;
  // Where logs, exec and the like go; may come and go while the server runs. Not owned.
  void set_pod_backend(PodBackend* backend);
  // Ends all requests; everything that was answered is on disk.
  Task<> stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grapnel::local
