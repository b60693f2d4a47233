#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

#include "base/log.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "controllers/table.h"

namespace grapnel::cli {
namespace {

const std::map<std::string, Output> kOutputs{{"table", Output::kTable},
                                             {"json", Output::kJson},
                                             {"yaml", Output::kYaml},
                                             {"name", Output::kName},
                                             {"wide", Output::kWide}};
const std::map<std::string, LogFormat> kLogFormats{
    {"auto", LogFormat::kAuto}, {"text", LogFormat::kText}, {"json", LogFormat::kJson}};

// All options of all commands, and the command that was chosen.
struct Invocation {
  Output output = Output::kTable;
  ManifestOptions manifest;
  ClusterOptions cluster;
  Target target;
  ExperimentOptions experiment;
  LogsOptions logs;
  OutputsOptions outputs;
  ExecOptions exec;
  CopyOptions copy;
  ProcessOptions process;
  std::vector<std::string> ports;
  OpenOptions open;
  std::string context;
  OperatorOptions op;
  InstallOptions install;
  LogFormat log_format = LogFormat::kAuto;
  bool verbose = false;
  std::string shell;
  std::string kind;
  std::function<int()> command;
};

void add_output(CLI::App* command, Output& output) {
  command->add_option("-o,--output", output, "Form of the output")
      ->transform(CLI::CheckedTransformer(kOutputs, CLI::ignore_case))
      ->option_text("TEXT:{table,wide,name,json,yaml}");
}

void add_manifest(CLI::App* command, ManifestOptions& options) {
  command->add_option("manifest", options.file, "The manifest; - for standard input")->required();
  command->add_option("--name", options.name, "Name of the experiment");
  command->add_option("-n,--namespace", options.ns, "Its namespace");
}

void add_with_code(CLI::App* command, ManifestOptions& options) {
  command->add_flag("--with-code", options.with_code,
                    "Bring the current directory along; processes start in it");
}

void add_cluster_name(CLI::App* command, ClusterOptions& options, const std::string& flag) {
  command->add_option(flag, options.name, "Which laptop cluster");
}

// experiment, jobset …
std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const auto* kind : controllers::our_kinds()) names.push_back(to_lower(kind->type.kind.kind));
  return names;
}

void add_manifest_commands(CLI::App& app, Invocation& i) {
  auto* validate_command =
      app.add_subcommand("validate", "Check a manifest, or JobSets and Experiments for kubectl");
  add_manifest(validate_command, i.manifest);
  validate_command->callback([&i] { i.command = [&i] { return validate(i.manifest); }; });

  auto* render_command =
      app.add_subcommand("render", "Print the resources that a manifest becomes");
  add_manifest(render_command, i.manifest);
  add_with_code(render_command, i.manifest);
  add_output(render_command, i.manifest.output);
  render_command->callback([&i] { i.command = [&i] { return render(i.manifest); }; });

  app.add_subcommand("schema", "Print the JSON Schema of manifests, for editors")->callback([&i] {
    i.command = [] { return schema(); };
  });
  app.add_subcommand("crds", "Print the CustomResourceDefinitions to install")->callback([&i] {
    i.command = [] { return print_crds(); };
  });
  auto* reference = app.add_subcommand("reference", "Print the fields of our kinds, as Markdown");
  reference->add_option("kind", i.kind, "Of this kind alone")->check(CLI::IsMember(kind_names()));
  reference->callback([&i] { i.command = [&i] { return print_reference(i.kind); }; });

  auto* run_command = app.add_subcommand(
      "run", "Run a manifest on this machine and follow it; exits with the experiment's code");
  add_manifest(run_command, i.manifest);
  add_cluster_name(run_command, i.cluster, "--cluster");
  run_command->add_option("--oversubscribe", i.cluster.oversubscribe,
                          "Offer N times this machine's CPUs and memory (for a new cluster)");
  run_command->callback(
      [&i] { i.command = [&i] { return run({.manifest = i.manifest, .cluster = i.cluster}); }; });
}

void add_target(CLI::App* command, Target& target) {
  command->add_option("--kubeconfig", target.kubeconfig, "Kubeconfig of the cluster");
  command->add_option("--context", target.context, "Context of the kubeconfig");
  command->add_option("--cluster", target.cluster, "A laptop cluster by its name");
}

CLI::App* add_experiment_command(CLI::App& app, const std::string& name, const std::string& help,
                                 ExperimentOptions& options) {
  auto* command = app.add_subcommand(name, help);
  add_target(command, options.target);
  command->add_option("-n,--namespace", options.target.ns, "Its namespace");
  command->add_option("name", options.name, "The experiment")->required();
  return command;
}

void add_experiment_commands(CLI::App& app, Invocation& i) {
  auto* submit_command =
      app.add_subcommand("submit", "Run a manifest on a cluster; prints its name");
  add_target(submit_command, i.target);
  add_manifest(submit_command, i.manifest);
  add_with_code(submit_command, i.manifest);
  submit_command->callback([&i, submit_command] {
    if (submit_command->count("--namespace") > 0) i.target.ns = i.manifest.ns;
    i.command = [&i] { return submit(i.manifest, i.target); };
  });

  auto* plan_command = app.add_subcommand(
      "plan", "Say what submit would do on a cluster, and whether the cluster would accept it");
  add_target(plan_command, i.target);
  add_manifest(plan_command, i.manifest);
  plan_command->callback([&i, plan_command] {
    if (plan_command->count("--namespace") > 0) i.target.ns = i.manifest.ns;
    i.command = [&i] { return plan(i.manifest, i.target); };
  });

  auto* list_command = app.add_subcommand("list", "Show the experiments");
  add_target(list_command, i.experiment.target);
  list_command->add_option("-n,--namespace", i.experiment.target.ns, "Their namespace");
  list_command->add_flag("-A,--all-namespaces", i.experiment.all_namespaces, "Of all namespaces");
  add_output(list_command, i.experiment.output);
  list_command->callback([&i] { i.command = [&i] { return list_experiments(i.experiment); }; });

  add_experiment_command(app, "cancel", "Stop an experiment, but keep it", i.experiment)
      ->callback([&i] { i.command = [&i] { return cancel(i.experiment); }; });
  add_experiment_command(app, "delete", "Delete an experiment; one that runs is stopped",
                         i.experiment)
      ->callback([&i] { i.command = [&i] { return remove_experiment(i.experiment); }; });
  add_experiment_command(app, "retry", "Run an experiment once more, under a new name",
                         i.experiment)
      ->callback([&i] { i.command = [&i] { return retry(i.experiment); }; });

  auto* outputs_command =
      app.add_subcommand("outputs", "Show what an experiment wrote on this machine, or copy it");
  add_target(outputs_command, i.outputs.target);
  outputs_command->add_option("-n,--namespace", i.outputs.target.ns, "Its namespace");
  outputs_command->add_option("name", i.outputs.name, "The experiment")->required();
  outputs_command->add_option("--to", i.outputs.copy_to, "Copy what it wrote into this folder");
  add_output(outputs_command, i.outputs.output);
  outputs_command->callback([&i] { i.command = [&i] { return outputs(i.outputs); }; });
}

void add_logs_command(CLI::App& app, Invocation& i) {
  auto* command = app.add_subcommand("logs", "Print what the processes of an experiment wrote");
  auto& o = i.logs;
  add_target(command, o.target);
  command->add_option("-n,--namespace", o.target.ns, "Its namespace");
  command->add_option("name", o.name, "The experiment")->required();
  command->add_flag("-f,--follow", o.follow, "Follow until the experiment ends");
  command->add_flag("--previous", o.previous, "Show the logs from before the last restart");
  command->add_option("--role", o.role, "Only of this component");
  command->add_option("--rank", o.rank, "Only of this rank; with --role, counted within it");
  command->add_option("--since", o.since, "Only what is newer: 30s, 5m, 2h");
  command->add_option("--tail", o.tail, "Only the last lines of each process");
  command->add_option("--grep", o.grep, "Only lines that match this regular expression");
  command->callback([&i] { i.command = [&i] { return logs(i.logs); }; });
}

void add_process(CLI::App* command, ProcessOptions& options) {
  add_target(command, options.target);
  command->add_option("-n,--namespace", options.target.ns, "Its namespace");
  command->add_option("--role", options.role, "A process of this component");
  command->add_option("--rank", options.rank,
                      "The process of this rank; with --role, counted within it");
}

void add_process_commands(CLI::App& app, Invocation& i) {
  auto* exec_command = app.add_subcommand(
      "exec", "Run a command in a process of an experiment; without one a shell");
  add_process(exec_command, i.exec.process);
  exec_command->add_option("name", i.exec.process.name, "The experiment")->required();
  exec_command->add_flag("-i,--stdin", i.exec.input, "Pass standard input on");
  exec_command->add_flag("-t,--tty", i.exec.terminal, "Give it the terminal");
  exec_command->add_option("command", i.exec.command, "After --: the command and its arguments");
  exec_command->callback([&i] { i.command = [&i] { return exec(i.exec); }; });

  auto* copy_command =
      app.add_subcommand("cp", "Copy files into a process of an experiment or out of it");
  add_process(copy_command, i.copy.process);
  copy_command->add_option("from", i.copy.from, "A path, or NAME:PATH")->required();
  copy_command->add_option("to", i.copy.to, "NAME:PATH, or a path")->required();
  copy_command->callback([&i] { i.command = [&i] { return copy(i.copy); }; });

  auto* forward_command =
      app.add_subcommand("port-forward", "Forward local ports to ports of an experiment's process");
  add_process(forward_command, i.process);
  forward_command->add_option("name", i.process.name, "The experiment")->required();
  forward_command->add_option("ports", i.ports, "LOCAL:REMOTE; PORT for both; :REMOTE for any")
      ->required();
  forward_command->callback(
      [&i] { i.command = [&i] { return port_forward(i.process, i.ports); }; });
}

void add_open_command(CLI::App& app, Invocation& i) {
  auto* command = app.add_subcommand("open", "Open a web page of an experiment");
  auto& o = i.open;
  add_target(command, o.target);
  command->add_option("-n,--namespace", o.target.ns, "Its namespace");
  command->add_option("name", o.name, "The experiment")->required();
  command->add_option("page", o.what, "ray, tensorboard or jupyter")
      ->required()
      ->check(CLI::IsMember({"ray", "tensorboard", "jupyter"}));
  command->add_option("--port", o.port, "Port of this machine; default: the page's own");
  command->callback([&i] { i.command = [&i] { return open_page(i.open); }; });
}

void add_top_command(CLI::App& app, Invocation& i) {
  auto* command =
      app.add_subcommand("top", "Show what the processes of experiments use of CPU and memory");
  add_target(command, i.experiment.target);
  command->add_option("-n,--namespace", i.experiment.target.ns, "Their namespace");
  command->add_flag("-A,--all-namespaces", i.experiment.all_namespaces, "Of all namespaces");
  command->add_option("name", i.experiment.name, "The experiment; none: all");
  add_output(command, i.experiment.output);
  command->callback([&i] { i.command = [&i] { return top(i.experiment); }; });
}

void add_config_command(CLI::App& app, Invocation& i) {
  auto* command = app.add_subcommand("config", "Show the clusters there are to choose from");
  add_target(command, i.target);
  add_output(command, i.output);
  command->callback([&i, command] {
    if (command->get_subcommands().empty()) {
      i.command = [&i] { return list_targets(i.target, i.output); };
    }
  });
  command->add_subcommand("list", "List all clusters; the default")->callback([&i] {
    i.command = [&i] { return list_targets(i.target, i.output); };
  });
  command->add_subcommand("current", "Which cluster a command would speak to, and why")
      ->callback([&i] { i.command = [&i] { return current_target(i.target); }; });
  auto* use_command =
      command->add_subcommand("use", "Make a context the current one of the kubeconfig");
  use_command->add_option("context", i.context, "Its name")->required();
  use_command->callback(
      [&i] { i.command = [&i] { return use_context(i.context, i.target.kubeconfig); }; });
}

void add_cluster_commands(CLI::App& app, Invocation& i) {
  auto* up_command = app.add_subcommand("up", "Start the laptop cluster");
  add_cluster_name(up_command, i.cluster, "--name");
  up_command->add_flag("-d,--detach", i.cluster.detached, "In the background");
  up_command->add_option("--oversubscribe", i.cluster.oversubscribe,
                         "Offer N times this machine's CPUs and memory");
  up_command->add_option("--port", i.cluster.port, "Port of the API server; 0: any");
  up_command->add_flag("--no-operator", i.cluster.without_operator,
                       "Leave out Grapnel's own kinds and controllers, to run other operators");
  up_command->add_option("--report-fd", i.cluster.report_fd)->group("");  // for ourselves
  up_command->callback([&i] { i.command = [&i] { return up(i.cluster); }; });

  auto* down_command = app.add_subcommand("down", "Stop the laptop cluster and all its pods");
  add_cluster_name(down_command, i.cluster, "--name");
  down_command->callback([&i] { i.command = [&i] { return down(i.cluster); }; });

  auto* status_command = app.add_subcommand(
      "status", "Show an experiment and all that was made for it, or the laptop cluster");
  status_command->add_option("experiment", i.experiment.name, "None: the laptop cluster");
  status_command->add_option("--kubeconfig", i.experiment.target.kubeconfig,
                             "Kubeconfig of the cluster");
  status_command->add_option("--context", i.experiment.target.context, "Context of the kubeconfig");
  status_command->add_option("--cluster,--name", i.experiment.target.cluster,
                             "A laptop cluster by its name");
  status_command->add_option("-n,--namespace", i.experiment.target.ns, "Its namespace");
  status_command->add_flag("-w,--watch", i.experiment.watch, "Follow until the experiment ends");
  add_output(status_command, i.output);
  status_command->callback([&i] {
    i.experiment.output = i.output;
    if (!i.experiment.target.cluster.empty()) i.cluster.name = i.experiment.target.cluster;
    i.command = [&i] {
      return i.experiment.name.empty() ? cluster_status(i.cluster, i.output)
                                       : experiment_status(i.experiment);
    };
  });

  auto* env_command = app.add_subcommand("env", "Print the KUBECONFIG of the laptop cluster");
  add_cluster_name(env_command, i.cluster, "--name");
  env_command->callback([&i] { i.command = [&i] { return print_env(i.cluster); }; });
}

void add_operator_command(CLI::App& app, Invocation& i) {
  auto* command = app.add_subcommand("operator", "Run the controllers on a cluster");
  auto& o = i.op;
  command->add_option("--kubeconfig", o.kubeconfig, "Default: $KUBECONFIG, or the pod's own");
  command->add_option("--context", o.context, "Context of the kubeconfig");
  o.controllers = controllers::controller_names(",");
  command->add_option("--controllers", o.controllers, "Which ones")->capture_default_str();
  command->add_option("--namespace", o.ns, "Only this one; default: all");
  command->add_option("--leader-elect", o.leader_elect, "Work only while holding the Lease")
      ->capture_default_str();
  command->add_option("--leader-elect-namespace", o.leader_elect_namespace, "Where the Lease is");
  command->add_option("--metrics-addr", o.metrics_address, "Where /metrics is; 0: nowhere")
      ->capture_default_str();
  command
      ->add_option("--health-addr", o.health_address, "Where /healthz and /readyz are; 0: nowhere")
      ->capture_default_str();
  command
      ->add_option("--webhook-addr", o.webhook_address, "Where admission webhooks are; 0: nowhere")
      ->capture_default_str();
  command->add_option("--webhook-cert-dir", o.webhook_certificates,
                      "Folder with tls.crt and tls.key; default: certificates of our own making");
  command->add_flag(
      "--strict-compatibility", o.strict,
      "Do what the original JobSet controller does, wherever ours differs on purpose");
  command->callback([&i] { i.command = [&i] { return run_operator(i.op); }; });
}

void add_install_command(CLI::App& app, Invocation& i) {
  auto* command = app.add_subcommand("install", "Install the operator in a cluster, or update it");
  auto& o = i.install;
  command->add_flag("--print", o.print, "Only print what would be applied");
  command->add_option("--namespace", o.ns, "Where the operator runs")->capture_default_str();
  command->add_option("--image", o.image, "The operator's image")->capture_default_str();
  command->add_flag("!--no-webhooks", o.webhooks, "Leave the admission webhooks out");
  command->add_flag("--strict-compatibility", o.strict,
                    "JobSets as the original controller treats them (grapnel operator)");
  command
      ->add_option("--concurrency-shares", o.concurrency_shares,
                   "Shares of the API server's concurrency for the operator's requests; 0: it "
                   "shares with all other service accounts")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  command->add_option("--kubeconfig", o.kubeconfig, "Default: $KUBECONFIG, or ~/.kube/config");
  command->add_option("--context", o.context, "Context of the kubeconfig");
  command->callback([&i] { i.command = [&i] { return install(i.install); }; });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Grapnel runs distributed machine learning on Kubernetes, and on a laptop without it.",
      "grapnel");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of all commands");
  Invocation i;
  app.add_option("--log-format", i.log_format, "Form of the log")
      ->transform(CLI::CheckedTransformer(kLogFormats, CLI::ignore_case))
      ->option_text("TEXT:{auto,text,json}");
  app.add_flag("-v,--verbose", i.verbose, "Say more in the log");
  app.fallthrough();

  auto* version_command = app.add_subcommand("version", "Print the version");
  add_output(version_command, i.output);
  version_command->callback([&i] { i.command = [&i] { return version(i.output); }; });
  add_manifest_commands(app, i);
  add_experiment_commands(app, i);
  add_logs_command(app, i);
  add_process_commands(app, i);
  add_open_command(app, i);
  add_top_command(app, i);
  add_config_command(app, i);
  add_cluster_commands(app, i);
  add_operator_command(app, i);
  add_install_command(app, i);
  auto* completion_command = app.add_subcommand("completion", "Print a shell's completion script");
  completion_command->add_option("shell", i.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion_command->callback([&i, &app] {
    i.command = [&i, &app] {
      std::cout << completion_script(i.shell, command_tree(app));
      return kOk;
    };
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kOk : kUsage;
  }
  // A command for a person speaks through its own output; what serves speaks through its log.
  const bool serves = app.got_subcommand("operator") || app.got_subcommand("up");
  const LogLevel lowest = serves ? LogLevel::kInfo : LogLevel::kError;
  log_setup(i.log_format, i.verbose ? LogLevel::kDebug : lowest);
  return i.command();
}

}  // namespace grapnel::cli
