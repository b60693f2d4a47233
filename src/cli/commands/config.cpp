// grapnel config: the clusters there are to choose from, and which one a command would speak to.
#include <filesystem>
#include <iostream>

#include "cli/commands.h"
#include "cli/manifest.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/set_context.h"
#include "cli/table.h"
#include "cli/target.h"
#include "kube/access.h"

namespace grapnel::cli {
namespace {

struct Row {
  bool current = false;
  std::string name;
  std::string kind;  // "laptop", "context"
  std::string server;
  std::string ns;
  std::string state;  // of a laptop cluster
};

std::string server_of(const kube::Kubeconfig& config, const std::string& cluster) {
  for (const auto& entry : config.clusters) {
    if (entry.name == cluster) return entry.server;
  }
  return "";
}

std::vector<Row> laptop_rows(const TargetChoice& choice) {
  std::vector<Row> rows;
  const auto any = cluster_paths("default");
  if (!any) return rows;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(any->root.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    const ClusterPaths paths{entry.path()};
    if (!std::filesystem::exists(paths.data(), ignored)) continue;
    rows.push_back({.current = choice.laptop == name,
                    .name = name,
                    .kind = "laptop",
                    .server = "",
                    .ns = "default",
                    .state = running_pid(paths) ? "up" : "down"});
  }
  std::ranges::sort(rows, {}, &Row::name);
  return rows;
}

Result<std::vector<Row>> all_rows(const Target& target) {
  const auto choice = choose_target(target);
  if (!choice) return fail(choice.error());
  auto rows = laptop_rows(*choice);
  // A laptop cluster's own kubeconfig has nothing to choose from.
  const auto config = kube::find_kubeconfig({.kubeconfig = target.kubeconfig});
  if (!config) return fail(config.error());
  const std::string current = target.context.empty() ? config->current_context : target.context;
  for (const auto& context : config->contexts) {
    rows.push_back({.current = choice->laptop.empty() && context.name == current,
                    .name = context.name,
                    .kind = "context",
                    .server = server_of(*config, context.cluster),
                    .ns = context.ns.empty() ? "default" : context.ns,
                    .state = ""});
  }
  return rows;
}

Json document_of(const std::vector<Row>& rows) {
  JsonArray out;
  for (const auto& row : rows) {
    JsonObject one{
        {"name", row.name}, {"kind", row.kind}, {"current", row.current}, {"namespace", row.ns}};
    if (!row.server.empty()) one["server"] = row.server;
    if (!row.state.empty()) one["state"] = row.state;
    out.push_back(std::move(one));
  }
  return JsonObject{{"items", std::move(out)}};
}

}  // namespace

int list_targets(const Target& target, Output output) {
  const auto rows = all_rows(target);
  if (!rows) return report(rows.error(), kUsage);
  if (is_document(output)) {
    print_document(document_of(*rows), output);
    return kOk;
  }
  if (output == Output::kName) {
    for (const auto& row : *rows) std::cout << row.name << "\n";
    return kOk;
  }
  if (rows->empty()) {
    std::cerr << "there is no cluster; `grapnel up -d` starts one on this machine\n";
    return kOk;
  }
  Table table({"CURRENT", "NAME", "KIND", "NAMESPACE", "SERVER"});
  for (const auto& row : *rows) {
    table.add({row.current ? "*" : "", row.name, row.kind, row.ns,
               row.state.empty() ? row.server : row.state});
  }
  std::cout << table.text();
  return kOk;
}

int current_target(const Target& target) {
  const auto choice = choose_target(target);
  if (!choice) return report(choice.error(), kUsage);
  if (!choice->laptop.empty()) {
    std::cout << fmt::format("the laptop cluster '{}' ({})\n", choice->laptop, choice->why);
    return kOk;
  }
  const auto access =
      kube::find_access({.kubeconfig = choice->kubeconfig, .context = target.context});
  if (!access) return report(access.error(), kUsage);
  std::cout << fmt::format(
      "{} at {} ({})\n",
      access->context.empty() ? "the cluster of this pod" : "context " + access->context,
      access->server, choice->why);
  return kOk;
}

int use_context(const std::string& name, const std::string& kubeconfig) {
  const auto config = kube::find_kubeconfig({.kubeconfig = kubeconfig});
  if (!config) return report(config.error(), kUsage);
  if (const auto chosen = kube::choose_context(*config, name); !chosen) {
    return report(chosen.error(), kUsage);
  }
  // kubectl, too, writes it to the first file.
  const std::string& file = config->files.front();
  const auto text = read_file(std::filesystem::path(file));
  if (!text) return report(text.error(), kFailed);
  const auto changed = with_current_context(*text, name);
  if (!changed) return report(fail_in(file, changed.error()).value(), kFailed);
  if (const auto written = write_private_file(file, *changed); !written) {
    return report(written.error(), kFailed);
  }
  std::cout << fmt::format("context {} is the current one of {}\n", name, file);
  return kOk;
}

}  // namespace grapnel::cli
