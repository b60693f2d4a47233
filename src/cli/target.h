// Which cluster a command speaks to, by the same rule everywhere: what --kubeconfig or --context
// name; else the laptop cluster that --cluster names; else $KUBECONFIG; else the laptop cluster
// `default` while it is up; else the user's own kubeconfig.
#pragma once

#include "base/async.h"
#include "cli/contact.h"
#include "cli/options.h"
#include "kube/connect.h"

namespace grapnel::cli {

struct TargetConnection {
  std::unique_ptr<kube::Client> client;
  std::string ns;          // the one asked for, or that of the context
  bool is_laptop = false;  // pods run on this machine, on its files
  Cluster cluster;
};

// What the rule chooses, and why, before anything is opened.
struct TargetChoice {
  std::string kubeconfig;  // "": wherever kubectl would look
  std::string laptop;      // the laptop cluster's name; "": none
  std::string why;         // "--context says so"
};
Result<TargetChoice> choose_target(const Target& target);

Result<TargetConnection> connect_to(Executor executor, const Target& target);

}  // namespace grapnel::cli
