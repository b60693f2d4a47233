// What several kubeconfigs say together, and which of it a context means.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/kubeconfig.h"

namespace grapnel::kube {
namespace {

template <class Entry>
const Entry* by_name(const std::vector<Entry>& entries, std::string_view name) {
  const auto found = std::ranges::find(entries, name, &Entry::name);
  return found == entries.end() ? nullptr : &*found;
}

template <class Entry>
std::string names_of(const std::vector<Entry>& entries) {
  constexpr size_t kMost = 20;
  std::string text;
  for (const Entry& entry : entries) {
    if (&entry - entries.data() == kMost) return text + ", …";
    text += text.empty() ? "" : ", ";
    text += entry.name;
  }
  return text.empty() ? "none" : text;
}

template <class Entry>
std::string suggestion(const std::vector<Entry>& entries, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  const std::string_view near = nearest(name, names);
  return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
}

template <class Entry>
void take_new(std::vector<Entry>& into, std::vector<Entry>& from) {
  const size_t count = into.size();
  for (Entry& entry : from) {
    const auto end = into.begin() + static_cast<std::ptrdiff_t>(count);
    if (std::ranges::find(into.begin(), end, entry.name, &Entry::name) == end) {
      into.push_back(std::move(entry));
    }
  }
}

}  // namespace

Kubeconfig merge_kubeconfigs(std::vector<Kubeconfig> configs) {
  Kubeconfig merged;
  for (Kubeconfig& config : configs) {
    take_new(merged.clusters, config.clusters);
    take_new(merged.users, config.users);
    take_new(merged.contexts, config.contexts);
    if (merged.current_context.empty()) merged.current_context = config.current_context;
    merged.files.insert(merged.files.end(), config.files.begin(), config.files.end());
  }
  return merged;
}

Result<ChosenContext> choose_context(const Kubeconfig& config, std::string_view name) {
  const std::string files = join(config.files, ", ");
  const bool current = name.empty();
  if (current) name = config.current_context;
  if (name.empty()) {
    return fail(Reason::kUsage,
                "{}: current-context is not set; choose one with --context or `kubectl config "
                "use-context`: {}",
                files, names_of(config.contexts));
  }
  ChosenContext chosen{.context = by_name(config.contexts, name)};
  if (chosen.context == nullptr) {
    return fail(Reason::kUsage, "{}: {} '{}' does not exist{}; there are: {}", files,
                current ? "current-context" : "context", name, suggestion(config.contexts, name),
                names_of(config.contexts));
  }
  const Origin& origin = chosen.context->origin;
  if (chosen.context->cluster.empty()) {
    return fail(Reason::kUsage, "{}: is missing; name one of: {}", origin.text("context.cluster"),
                names_of(config.clusters));
  }
  chosen.cluster = by_name(config.clusters, chosen.context->cluster);
  if (chosen.cluster == nullptr) {
    return fail(Reason::kUsage, "{}: there is no cluster '{}'{}; there are: {}",
                origin.text("context.cluster"), chosen.context->cluster,
                suggestion(config.clusters, chosen.context->cluster), names_of(config.clusters));
  }
  if (chosen.context->user.empty()) return chosen;
  chosen.user = by_name(config.users, chosen.context->user);
  if (chosen.user == nullptr) {
    return fail(Reason::kUsage, "{}: there is no user '{}'{}; there are: {}",
                origin.text("context.user"), chosen.context->user,
                suggestion(config.users, chosen.context->user), names_of(config.users));
  }
  return chosen;
}

}  // namespace grapnel::kube
