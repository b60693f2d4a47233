// Where the API server is and how to log in: from a kubeconfig's context, or from what Kubernetes
// gives to every pod.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/client.h"
#include "kube/kubeconfig.h"

namespace grapnel::kube {

// The value of an environment variable, "" when it is not set.
using Environment = std::function<std::string(const std::string& name)>;
std::string environment_of_process(const std::string& name);

// A certificate or key. One from a file is read again when the file changes.
struct Pem {
  std::string text;
  std::string file;
};

struct Access {
  std::string server;
  std::string ns = "default";
  std::string context;  // "" inside a cluster

  Pem authority;
  Pem certificate;
  Pem key;
  bool insecure_skip_verify = false;
  std::string server_name;
  std::string proxy_url;

  http::Headers headers;   // who we are, as far as it never changes
  std::string token_file;  // read again each minute
  std::optional<ExecPlugin> exec;
  Json exec_cluster;    // what the plugin is told of the cluster
  std::string user_at;  // the user's place in its file, for errors
};

struct AccessOptions {
  std::string kubeconfig;  // "": KUBECONFIG, then ~/.kube/config, then the pod's own
  std::string context;     // "": the current one
  Environment environment = &environment_of_process;
  std::string service_account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};

Result<Access> find_access(const AccessOptions& options);
// The files that find_access() reads, merged; without contexts where there are none.
Result<Kubeconfig> find_kubeconfig(const AccessOptions& options);
Result<Access> access_of(const ChosenContext& chosen);

}  // namespace grapnel::kube
