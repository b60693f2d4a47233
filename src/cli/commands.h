// The commands. Each returns its exit code and writes its own errors to standard error.
#pragma once

#include "cli/options.h"

namespace grapnel::cli {

// Exit codes beside those of experiments.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kCancelled = 130;

int version(Output output);
int validate(const ManifestOptions& options);
int render(const ManifestOptions& options);
int schema();
int print_crds();
int print_reference(const std::string& kind);  // "": of all kinds
int up(const ClusterOptions& options);
int down(const ClusterOptions& options);
int cluster_status(const ClusterOptions& options, Output output);
int print_env(const ClusterOptions& options);
int run(const RunOptions& options);
int submit(const ManifestOptions& manifest, const Target& target);
int list_experiments(const ExperimentOptions& options);
int experiment_status(const ExperimentOptions& options);
int logs(const LogsOptions& options);
int cancel(const ExperimentOptions& options);
int remove_experiment(const ExperimentOptions& options);
int retry(const ExperimentOptions& options);
int outputs(const OutputsOptions& options);
int plan(const ManifestOptions& manifest, const Target& target);
int top(const ExperimentOptions& options);
int open_page(const OpenOptions& options);
int list_targets(const Target& target, Output output);
int current_target(const Target& target);
int use_context(const std::string& name, const std::string& kubeconfig);
int exec(ExecOptions options);
int copy(CopyOptions options);
int port_forward(const ProcessOptions& options, const std::vector<std::string>& ports);
int run_operator(const OperatorOptions& options);
int install(const InstallOptions& options);

}  // namespace grapnel::cli
