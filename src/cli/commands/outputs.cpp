// grapnel outputs: the folders of an experiment on this machine.
#include <filesystem>
#include <iostream>

#include "cli/commands.h"
#include "cli/experiment.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/table.h"
#include "cli/target.h"
#include "document/yaml.h"

namespace grapnel::cli {
namespace {

namespace fs = std::filesystem;

constexpr auto kFolders = std::to_array<std::string_view>({"inputs", "outputs", "tensorboard"});

struct Contents {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

Contents contents_of(const fs::path& folder) {
  Contents out;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code none;
    if (!it->is_regular_file(none)) continue;
    ++out.files;
    if (const auto size = it->file_size(none); !none) out.bytes += size;
  }
  return out;
}

std::string size_text(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr auto kUnits = std::to_array<std::string_view>({"KiB", "MiB", "GiB", "TiB"});
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

void show(const fs::path& folder, Output output) {
  JsonObject object;
  Table table({"FOLDER", "FILES", "SIZE", "PATH"});
  for (const auto name : kFolders) {
    const fs::path path = folder / name;
    const Contents contents = contents_of(path);
    object[name] =
        JsonObject{{"path", path.string()}, {"files", contents.files}, {"bytes", contents.bytes}};
    table.add({std::string(name), std::to_string(contents.files), size_text(contents.bytes),
               path.string()});
  }
  if (output == Output::kJson) {
    std::cout << to_pretty_text(object) << "\n";
  } else if (output == Output::kYaml) {
    std::cout << to_yaml(object);
  } else if (output == Output::kName) {
    std::cout << (folder / "outputs").string() << "\n";
  } else {
    std::cout << table.text();
  }
}

// outputs/ and tensorboard/: what it was given need not come back.
Result<> copy_outputs(const fs::path& folder, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  for (const auto name : {"outputs", "tensorboard"}) {
    if (error) break;
    if (!fs::exists(folder / name)) continue;
    fs::copy(folder / name, to / name,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing |
                 fs::copy_options::copy_symlinks,
             error);
  }
  if (error) return fail(Reason::kSystem, "cannot copy to {}: {}", to.string(), error.message());
  return {};
}

Task<int> do_outputs(Executor executor, OutputsOptions options) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  const auto experiment = co_await get_experiment(*to->client, {Interned(to->ns), options.name});
  if (!experiment) co_return report(experiment.error(), kFailed);
  const fs::path folder = experiment->status.folder;
  if (folder.empty()) {
    std::cerr << fmt::format(
        "'{0}' has no folder on this machine: only experiments of a laptop cluster have one; "
        "`grapnel cp` copies from the processes of others\n",
        options.name);
    co_return kFailed;
  }
  if (options.copy_to.empty()) {
    show(folder, options.output);
    co_return kOk;
  }
  if (const auto copied = copy_outputs(folder, options.copy_to); !copied) {
    co_return report(copied.error(), kFailed);
  }
  const fs::path target(options.copy_to);
  for (const auto name : {"outputs", "tensorboard"}) {
    const Contents contents = contents_of(target / name);
    std::cout << fmt::format("{}  {} files, {}\n", (target / name).string(), contents.files,
                             size_text(contents.bytes));
  }
  co_return kOk;
}

}  // namespace

int outputs(const OutputsOptions& options) {
  return run_loop([&](Executor executor) { return do_outputs(executor, options); });
}

}  // namespace grapnel::cli
