#include "local/kubelet/kept_logs.h"

#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/strings.h"
#include "local/kubelet/container_spec.h"

namespace grapnel::local::kubelet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhose = "pod.json";

Json description_of(const Pod& pod) {
  JsonObject meta{{"name", pod.meta.name()}, {"namespace", pod.meta.ns()}, {"uid", pod.uid()}};
  for (const char* field : {"labels", "creationTimestamp"}) {
    if (const Json* value = at(*pod.object, "metadata", field)) meta[field] = *value;
  }
  JsonArray containers;
  for (const Container& container : main_containers(pod)) {
    containers.push_back(JsonObject{{"name", container.name()}});
  }
  return JsonObject{{"metadata", std::move(meta)},
                    {"spec", JsonObject{{"containers", std::move(containers)}}},
                    {"status", JsonObject{{"phase", pod.phase()}}}};
}

std::optional<Json> read_description(const fs::path& folder) {
  const auto text = read_file((folder / kWhose).string());
  if (!text) return std::nullopt;
  auto pod = parse_json(*text);
  if (!pod) return std::nullopt;
  return std::move(*pod);
}

void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

std::vector<fs::path> folders_in(const std::string& parent) {
  std::vector<fs::path> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) out.push_back(entry.path());
  return out;
}

// "ns_name_uid": neither names nor uids have an underscore.
std::string uid_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.substr(name.rfind('_') + 1);
}

// The attempts of a container are files named by their number.
std::optional<uint64_t> latest_attempt(const fs::path& folder) {
  std::optional<uint64_t> latest;
  for (const auto& file : folders_in(folder.string())) {
    const std::string stem = file.stem().string();
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), number);
    if (error != std::errc() || end != stem.data() + stem.size()) continue;
    latest = std::max(latest.value_or(0), number);
  }
  return latest;
}

}  // namespace

void KeptLogs::take(const Pod& pod) const {
  const fs::path folder = log_directory_of_pod(state_directory_, pod);
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return;
  const Json description = description_of(pod);
  if (!wanted_ || !wanted_(description)) {
    remove_folder(folder);
    return;
  }
  std::ofstream(folder / kWhose) << to_text(description);
}

void KeptLogs::sweep(const std::set<std::string>& living) const {
  for (const auto& folder : folders_in(folder())) {
    if (living.contains(uid_of(folder))) continue;
    const auto pod = read_description(folder);
    if (!pod || !wanted_ || !wanted_(*pod)) remove_folder(folder);
  }
}

std::vector<Json> KeptLogs::all() const {
  std::vector<Json> out;
  for (const auto& folder : folders_in(folder())) {
    if (auto pod = read_description(folder)) out.push_back(std::move(*pod));
  }
  return out;
}

Result<std::string> KeptLogs::log_file(std::string_view ns, std::string_view pod,
                                       std::string_view container, bool previous) const {
  const std::string begin = fmt::format("{}_{}_", ns, pod);
  for (const auto& folder : folders_in(folder())) {
    if (!folder.filename().string().starts_with(begin)) continue;
    const auto whose = read_description(folder);
    if (!whose) continue;
    std::string name(container);
    const Json* containers = at(*whose, "spec", "containers");
    if (name.empty() && containers != nullptr && containers->as_array().size() == 1) {
      name = string_or(find(containers->as_array()[0], "name"));
    }
    if (name.empty() || name.find('/') != std::string::npos) break;
    const auto attempt = latest_attempt(folder / name);
    if (!attempt || (previous && *attempt == 0)) break;
    return log_path((folder / name).string(), previous ? *attempt - 1 : *attempt);
  }
  return fail(Reason::kNotFound, "there is no log of pod {}", pod);
}

}  // namespace grapnel::local::kubelet
