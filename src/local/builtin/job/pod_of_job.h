// The pods that a Job creates: their names and contents.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "local/builtin/job/job.h"

namespace grapnel::local {

// A name for a new pod, from the Job, the index and how many came before: never one of `taken`.
std::string pod_name(const Job& job, std::optional<int64_t> index,
                     const std::set<std::string_view>& taken);

struct NewPod {
  std::string name;
  std::optional<int64_t> index;           // of an Indexed Job
  std::optional<int64_t> index_failures;  // with backoffLimitPerIndex
};
Json pod_of_job(const Job& job, const NewPod& pod);

}  // namespace grapnel::local
