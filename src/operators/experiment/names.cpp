#include "operators/experiment/names.h"

#include <algorithm>

#include "base/strings.h"
#include "operators/jobset/names.h"

namespace grapnel::experiment {
namespace {

constexpr size_t kLongestLabel = 63;
constexpr size_t kEnding = 5;         // "-6f4a"
constexpr size_t kReadableStem = 30;  // longer ones only fill the screen

std::string too_long(size_t length, size_t longest) {
  return fmt::format("has {} characters, {} too many", length, length - longest);
}

// What stands behind the experiment's name in the longest name of a pod of that type, which has the
// greatest indexes; the last part is what the Job controller adds.
size_t length_behind_name(std::string_view type, const api::Component& component,
                          api::Operator op) {
  const bool many_jobs = op == api::Operator::jobset;
  const int64_t jobs = many_jobs ? component.count : 1;
  const int64_t pods = many_jobs ? component.completions.value_or(1) : component.count;
  return fmt::format("{}-{}-abcde", jobset::job_name("", type, jobs - 1), pods - 1).size();
}

// "NAME-worker-0-0.NAME" is the value of a label.
size_t longest_with_coordinator() {
  return (kLongestLabel - fmt::format("{}-0.", jobset::job_name("", "worker", 0)).size()) / 2;
}

}  // namespace

NameLimit name_limit(const api::ExperimentSpec& spec, const Components& components) {
  NameLimit limit{.longest = kLongestLabel};
  for (const auto& [type, component] : components.named) {
    const size_t behind = length_behind_name(type, component, spec.op);
    const size_t left = kLongestLabel - std::min(kLongestLabel, behind);
    if (left < limit.longest) limit = {left, fmt::format("type '{}'", type)};
  }
  if (!has_coordinator(spec.op)) return limit;
  const size_t with_coordinator = longest_with_coordinator();
  if (with_coordinator < limit.longest) {
    limit = {with_coordinator, fmt::format("operator '{}'", api::name_of(spec.op))};
  }
  return limit;
}

std::string why_not_name(std::string_view name, const NameLimit& limit) {
  if (name.size() > limit.longest) {
    return fmt::format("{}; with {} it may have at most {}", too_long(name.size(), limit.longest),
                       limit.because, limit.longest);
  }
  return why_not_dns1035_label(name);
}

std::string fitted_stem(std::string_view stem, const NameLimit& limit) {
  const size_t room = limit.longest - std::min(limit.longest, kEnding);
  std::string fitted(stem.substr(0, std::min(room, kReadableStem)));
  while (!fitted.empty() && fitted.back() == '-') fitted.pop_back();
  return fitted;
}

void check_type_names(const api::ExperimentSpec& spec, const Components& components,
                      api::Faults& faults) {
  constexpr size_t kShortestName = 1 + kEnding;
  const api::Path root("spec");
  const api::Path types(root, "types");
  for (const auto& [type, component] : components.named) {
    const size_t behind = length_behind_name(type, component, spec.op);
    if (behind + kShortestName <= kLongestLabel) continue;
    const size_t too_many = behind + kShortestName - kLongestLabel;
    faults.invalid(
        {types, type}, type,
        fmt::format("{}; the experiment's name comes before it",
                    too_long(type.size(), type.size() - std::min(type.size(), too_many))));
  }
}

}  // namespace grapnel::experiment
