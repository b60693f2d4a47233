#include "operators/experiment/process.h"

#include <charconv>

#include "operators/jobset/names.h"

namespace grapnel::experiment {
namespace {

constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";

int64_t number_of(std::string_view text, int64_t fallback = 0) {
  int64_t number = fallback;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

ProcessId process_id(const kube::Meta& pod) {
  const auto& labels = pod.labels;
  ProcessId id{.experiment = std::string(labels.get(kExperimentLabel)),
               .component = std::string(labels.get(kComponentLabel)),
               .is_companion = labels.has(kCompanionLabel)};
  if (id.is_companion) {
    id.name = id.component;
    return id;
  }
  const int64_t job = number_of(labels.get(jobset::keys::kJobIndex));
  const int64_t index = number_of(labels.get(kCompletionIndex));
  id.replica =
      number_of(labels.get(kReplicaLabel), job * number_of(labels.get(kJobSizeLabel), 1) + index);
  id.rank = number_of(labels.get(kRankLabel), number_of(labels.get(kFirstRankLabel)) + id.replica);
  // As the pods' own names do: of a type `worker` and one `worker-2` no two have the same.
  const bool has_many_jobs = number_of(labels.get(jobset::keys::kGlobalReplicas), 1) > 1;
  id.number = has_many_jobs ? fmt::format("{}-{}", job, index) : std::to_string(id.replica);
  id.name = fmt::format("{}-{}", id.component, id.number);
  return id;
}

Result<api::Pod> decode_process(JsonView object) {
  return api::decode_pod(
      object,
      {.all_labels = false,
       .labels = {kExperimentLabel, kComponentLabel, kReplicaLabel, kRankLabel, kFirstRankLabel,
                  kJobSizeLabel, kCompanionLabel, kCompletionIndex, jobset::keys::kJobIndex,
                  jobset::keys::kGlobalReplicas, jobset::keys::kJobSetUid}});
}

}  // namespace grapnel::experiment
