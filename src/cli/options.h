// What each command was asked to do: filled by the command line (app.cpp), read by the commands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace grapnel::cli {

enum class Output { kTable, kJson, kYaml, kName, kWide };

// Which cluster a command speaks to.
struct Target {
  std::string kubeconfig;
  std::string context;
  std::string ns;
  std::string cluster;  // a laptop cluster's name
};

struct ClusterOptions {
  std::string name = "default";
  bool detached = false;
  double oversubscribe = 1;
  uint16_t port = 0;
  bool without_operator = false;
  int report_fd = -1;  // where a cluster in the background says how its start went
};

struct ManifestOptions {
  std::string file;
  std::string name;  // "": the manifest's, or one made from the file's
  std::string ns = "default";
  bool with_code = false;  // the current directory comes with it
  Output output = Output::kYaml;
};

struct ExperimentOptions {
  Target target;
  std::string name;
  Output output = Output::kTable;
  bool all_namespaces = false;
  bool watch = false;
};

struct OutputsOptions {
  Target target;
  std::string name;
  std::string copy_to;  // a folder; "": nothing is copied
  Output output = Output::kTable;
};

struct LogsOptions {
  Target target;
  std::string name;
  bool follow = false;
  bool previous = false;
  std::string role;
  std::optional<int> rank;
  std::string since;  // "5m"
  std::optional<int64_t> tail;
  std::string grep;
};

// A process of an experiment; without role and rank: the first.
struct ProcessOptions {
  Target target;
  std::string name;
  std::string role;
  std::optional<int> rank;
};

struct ExecOptions {
  ProcessOptions process;
  std::vector<std::string> command;  // empty: a shell
  bool input = false;
  bool terminal = false;
};

struct CopyOptions {
  ProcessOptions process;  // its name is in one of the two
  std::string from;
  std::string to;
};

struct OpenOptions {
  Target target;
  std::string name;
  std::string what;   // ray, tensorboard, jupyter
  uint16_t port = 0;  // here; 0: the page's own, or any free one
};

struct RunOptions {
  ManifestOptions manifest;
  ClusterOptions cluster;
};

struct OperatorOptions {
  std::string kubeconfig;
  std::string context;
  std::string controllers = {};  // all of ours: app.cpp names them
  std::string ns;
  bool leader_elect = true;
  std::string leader_elect_namespace;
  std::string metrics_address = "0.0.0.0:8080";
  std::string health_address = "0.0.0.0:8081";
  std::string webhook_address = "0";
  std::string webhook_certificates;  // a folder with tls.crt and tls.key; "": we make our own
  bool strict = false;
};

struct InstallOptions {
  bool print = false;
  std::string ns = "grapnel-system";
  std::string image = "grapnel:latest";
  bool webhooks = true;
  int concurrency_shares = 100;  // of the API server; 0: none of its own
  bool strict = false;
  std::string kubeconfig;
  std::string context;
};

}  // namespace grapnel::cli
