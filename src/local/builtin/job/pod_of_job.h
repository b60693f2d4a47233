// The pods that a Job creates: their names and contents.
#pragma once

#include <optional>
#include <string>

#include "local/builtin/job/job.h"
#include "local/builtin/naming.h"

namespace grapnel::local {

// A name for a new pod, from the Job, the index and how many came before.
std::string pod_name(const Job& job, std::optional<int64_t> index, ChildNames& names);

struct NewPod {
  std::string name;
  std::optional<int64_t> index;           // of an Indexed Job
  std::optional<int64_t> index_failures;  // with backoffLimitPerIndex
};
Json pod_of_job(const Job& job, const NewPod& pod);

}  // namespace grapnel::local
