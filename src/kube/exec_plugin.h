// Credential plugins: programs that print a token or a certificate. A kubeconfig names them under
// `exec`.
//
// A plugin runs once for everybody who asks at the same time. Its result is kept until it expires
// or the server refuses it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/subprocess.h"
#include "kube/credentials.h"
#include "kube/kubeconfig.h"

namespace grapnel::kube {

struct PluginCredential {
  std::string token;
  std::string certificate_pem;
  std::string key_pem;
  std::optional<Time> expires;
};
// What a plugin printed. Pure.
Result<PluginCredential> decode_plugin_answer(std::string_view text, std::string_view api_version);

struct PluginOptions {
  ExecPlugin plugin;
  Json cluster;    // told to the plugin when it asks for that
  std::string at;  // where the kubeconfig names it, for errors
  // Called with each new certificate.
  std::function<void(const PluginCredential&)> on_certificate;
  bool terminal = false;  // a person sits there who may be asked
  Clock* clock = &system_clock();
  std::function<Task<Result<Finished>>(Command)> run = &run_program;
};
std::unique_ptr<TokenSource> token_from_plugin(Executor executor, PluginOptions options);

}  // namespace grapnel::kube
