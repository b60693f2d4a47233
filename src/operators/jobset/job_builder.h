// Makes the Jobs of one ReplicatedJob: the user's template whole, with our labels, annotations,
// subdomain, volumes and owner. What all of its Jobs share is made once.
#pragma once

#include "api/jobset.h"
#include "operators/jobset/child_job.h"

namespace grapnel::jobset {

// Where the Jobs of a ReplicatedJob stand among those of the JobSet and of their group.
struct Ranks {
  int64_t first_in_jobset = 0;
  int64_t first_in_group = 0;
  int64_t jobs_in_jobset = 0;
  int64_t jobs_in_group = 0;
};

class JobBuilder {
 public:
  JobBuilder(const api::JobSet& jobset, const api::ReplicatedJob& replicated, bool strict = false);
  Json build(int32_t index) const;
  // api::kSchedulingFields of the pods of that Job, those that there are.
  JsonObject scheduling(int32_t index) const;
  const api::ReplicatedJob& replicated() const { return replicated_; }

 private:
  JsonObject metadata() const;
  JsonObject spec() const;
  JsonObject labels_of(int32_t index, std::string_view job_name) const;
  void select_nodes(JsonObject& pod_spec, std::string_view job_name) const;

  const api::JobSet& jobset_;
  const api::ReplicatedJob& replicated_;
  bool strict_;
  Ranks ranks_;
  JsonObject labels_;     // that all its Jobs carry, as annotations too
  JsonObject placement_;  // annotations that ask for exclusive placement
  bool selects_nodes_by_job_ = false;
  JsonObject shared_;
};

bool restarts_alone(api::FailureAction action);
// Whether a rule of the failure policy restarts single Jobs.
bool restarts_jobs_alone(const api::JobSet& jobset);

}  // namespace grapnel::jobset
