// kubeconfig files as values: reading one, and merging several as kubectl does. What they name on
// disk (certificates, tokens) is not opened here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "document/json.h"
#include "document/yaml.h"

namespace grapnel::kube {

// Where an entry is, for errors, and the folder that its relative paths start from.
struct Origin {
  std::string file;
  std::string path;  // users[0]
  std::shared_ptr<const Positions> positions;

  // "config:12:3: users[0].user.token" for the field "user.token".
  std::string text(std::string_view field = "") const;
  // A path of the file as a path of ours.
  std::string resolve(std::string_view path) const;
};

struct ClusterEntry {
  std::string name;
  std::string server;
  std::string certificate_authority;       // a file
  std::string certificate_authority_data;  // base64
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name;
  std::string proxy_url;
  Json exec_config;  // what the cluster says to credential plugins
  Origin origin;
};

struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string install_hint;
  bool provide_cluster_info = false;
  enum class Interactive { kNever, kIfAvailable, kAlways } interactive = Interactive::kIfAvailable;
};

struct UserEntry {
  std::string name;
  std::string token;
  std::string token_file;
  std::string client_certificate;
  std::string client_certificate_data;
  std::string client_key;
  std::string client_key_data;
  std::string username;
  std::string password;
  std::string auth_provider;  // its name; we have none
  std::optional<ExecPlugin> exec;
  // Whom to act as.
  std::string as;
  std::string as_uid;
  std::vector<std::string> as_groups;
  std::vector<std::pair<std::string, std::string>> as_extra;
  Origin origin;
};

struct ContextEntry {
  std::string name;
  std::string cluster;
  std::string user;
  std::string ns;
  Origin origin;
};

struct Kubeconfig {
  std::vector<ClusterEntry> clusters;
  std::vector<UserEntry> users;
  std::vector<ContextEntry> contexts;
  std::string current_context;
  std::vector<std::string> files;
};

// Pure. `file` is what errors call it, and its folder is what relative paths start from.
Result<Kubeconfig> parse_kubeconfig(std::string_view text, std::string_view file = "kubeconfig");

// The first file wins: a later entry of the same name is ignored as a whole.
Kubeconfig merge_kubeconfigs(std::vector<Kubeconfig> configs);

// One context and what it names. Pointers into the config.
struct ChosenContext {
  const ContextEntry* context = nullptr;
  const ClusterEntry* cluster = nullptr;
  const UserEntry* user = nullptr;  // nullptr: none
};
// The context of that name, or the current one when the name is empty.
Result<ChosenContext> choose_context(const Kubeconfig& config, std::string_view name);

}  // namespace grapnel::kube
