#include "cli/code_package.h"

#include <algorithm>

#include "base/strings.h"
#include "base/subprocess.h"
#include "cli/ignore_rules.h"
#include "cli/paths.h"
#include "kube/kind.h"
#include "operators/experiment/code.h"
#include "operators/experiment/process.h"

namespace grapnel::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMost = uint64_t{1} << 20;  // that Kubernetes lets a ConfigMap hold
constexpr size_t kLargestShown = 5;
// So much is packed before we give up: it could not be held anyway, and its size is told.
constexpr uint64_t kPackedAtMost = uint64_t{1} << 30;

struct Walk {
  fs::path root;
  IgnoreRules rules;
  std::vector<CodeFile> files;

  Result<> into(const std::string& folder) {
    for (const char* name : {".gitignore", ".grapnelignore"}) {
      if (const auto text = read_file(root / folder / name)) rules.add(*text, folder);
    }
    std::error_code error;
    std::vector<fs::directory_entry> entries;
    for (fs::directory_iterator it(root / folder, error), end; !error && it != end;
         it.increment(error)) {
      entries.push_back(*it);
    }
    if (error) {
      return fail(Reason::kSystem, "cannot read {}: {}", (root / folder).string(), error.message());
    }
    std::ranges::sort(entries, {}, [](const auto& entry) { return entry.path(); });
    for (const auto& entry : entries) {
      const std::string name = entry.path().filename().string();
      if (name == ".git") continue;
      if (auto taken = take(entry, folder.empty() ? name : folder + "/" + name); !taken) {
        return taken;
      }
    }
    return {};
  }

  Result<> take(const fs::directory_entry& entry, const std::string& path) {
    std::error_code ignored;
    const bool is_folder = entry.is_directory(ignored) && !entry.is_symlink(ignored);
    if (rules.ignores(path, is_folder)) return {};
    if (is_folder) return into(path);
    // Sockets, pipes and devices are no code.
    if (entry.is_symlink(ignored)) {
      files.push_back({path, 0});
    } else if (entry.is_regular_file(ignored)) {
      files.push_back({path, entry.file_size(ignored)});
    }
    return {};
  }
};

std::string size_text(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  if (bytes < (1 << 20)) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

Result<std::vector<CodeFile>> code_files(const fs::path& directory) {
  Walk walk{.root = directory, .rules = {}, .files = {}};
  walk.rules.add("__pycache__/", "");
  if (auto walked = walk.into(""); !walked) return fail(walked.error());
  return std::move(walk.files);
}

std::string too_large_text(const std::string& directory, uint64_t packed,
                           std::vector<CodeFile> files) {
  std::string out =
      fmt::format("the code in {} is too large: {} when packed, where a ConfigMap holds {}\n",
                  directory, size_text(packed), size_text(kMost));
  std::ranges::sort(files, std::ranges::greater(), &CodeFile::size);
  files.resize(std::min(files.size(), kLargestShown));
  out += "the largest files, before packing:\n";
  for (const auto& [path, size] : files) {
    out += fmt::format("  {:>10}  {}\n", size_text(size), path);
  }
  return out +
         "name what is not needed in .grapnelignore (its rules are those of .gitignore), or "
         "build an image";
}

Task<Result<std::string>> pack_code(fs::path directory) {
  auto files = code_files(directory);
  if (!files) co_return fail(files.error());
  if (files->empty()) {
    co_return fail(Reason::kUsage, "there is no code in {}", directory.string());
  }
  std::string names;
  uint64_t whole = 0;
  for (const auto& [path, size] : *files) {
    names.append("./").append(path) += '\0';
    whole += size;
  }
  if (whole > kPackedAtMost) {
    co_return fail(Reason::kUsage, "{}",
                   too_large_text(directory.string(), whole, std::move(*files)));
  }
  // No names, times or orders of this machine: the same code is the same archive.
  auto packed = co_await run_program(
      {.arguments = {"tar", "-C", directory.string(), "--null", "--verbatim-files-from",
                     "--no-recursion", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0",
                     "-T", "-", "-czf", "-"},
       .input = std::move(names),
       .timeout = minutes(5),
       .max_output = kPackedAtMost});
  if (!packed) co_return fail_in("packing the code", packed.error());
  if (packed->exit_code != 0) {
    co_return fail(Reason::kSystem, "packing the code: {}", trim(packed->errors));
  }
  if (packed->output.size() > kMost) {
    co_return fail(Reason::kUsage, "{}",
                   too_large_text(directory.string(), packed->output.size(), std::move(*files)));
  }
  co_return std::move(packed->output);
}

std::string code_name(const std::string& experiment) {
  return experiment + "-code";
}

Json code_config_map(const std::string& experiment, const std::string& ns,
                     const std::string& packed) {
  return JsonObject{
      {"apiVersion", kube::kinds::kConfigMap.api_version()},
      {"kind", kube::kinds::kConfigMap.kind},
      {"metadata", JsonObject{{"name", code_name(experiment)},
                              {"namespace", ns},
                              {"labels", JsonObject{{experiment::kExperimentLabel, experiment}}}}},
      {"binaryData", JsonObject{{experiment::kCodeFile, base64_encode(packed)}}}};
}

}  // namespace grapnel::cli
