#include "operators/experiment/plan.h"

#include <algorithm>

#include "operators/common/object.h"
#include "operators/common/refusal.h"
#include "operators/common/ttl.h"
#include "operators/experiment/compile.h"
#include "operators/experiment/components.h"
#include "operators/experiment/pod_template.h"
#include "operators/experiment/progress.h"

namespace grapnel::experiment {
namespace {

using api::ExperimentStatus;
using api::Phase;
using operators::ref_to;
using runtime::Event;
using runtime::Plan;

bool has_ended(const ExperimentStatus& status) {
  return status.end_time.has_value();
}

void end(ExperimentStatus& status, Phase phase, std::string reason, std::string message, Time now) {
  status.phase = phase;
  status.reason = std::move(reason);
  status.message = std::move(message);
  status.end_time = now;
}

// The TensorBoard is there as long as the experiment runs.
void remove_tensorboard(const Observed& o, Plan& plan) {
  if (o.tensorboard == nullptr || o.tensorboard->meta.is_being_deleted()) return;
  plan.add(runtime::Delete{ref_to(*o.tensorboard)});
}

Plan after_end(const Observed& o, Time now) {
  const auto& experiment = o.experiment;
  Plan plan;
  remove_tensorboard(o, plan);
  plan.add(operators::expire(ref_to(experiment), *experiment.status.end_time,
                             experiment.spec.ttl_seconds_after_finished, now));
  return plan;
}

bool is_ours(const api::JobSet& child, const api::Experiment& experiment) {
  const auto* owner = child.meta.controller();
  return owner != nullptr && owner->uid == experiment.meta.uid;
}

// Suspending the JobSet ends its pods and keeps all that can be read about them.
void cancel(const Observed& o, Plan& plan, ExperimentStatus& status, Time now) {
  if (o.child != nullptr && !o.child->is_suspended()) {
    plan.add(runtime::Patch{.target = ref_to(*o.child),
                            .body = JsonObject{{"spec", JsonObject{{"suspend", true}}}}});
  }
  const bool stopped = o.child == nullptr || std::ranges::all_of(o.pods, &api::Pod::is_finished);
  if (stopped && (o.child == nullptr || o.child->is_suspended())) {
    end(status, Phase::Cancelled, "Cancelled", "cancelled on request", now);
  } else {
    status.reason = "Cancelling";
    status.message = "stopping its processes";
  }
}

void follow(const Observed& o, ExperimentStatus& status, Time now) {
  const auto& conditions = o.child->status.conditions;
  if (api::is_condition_true(conditions, "Completed")) {
    end(status, Phase::Succeeded, "Succeeded", "all processes ended well", now);
    status.exit_code = 0;
  } else if (const auto* failed = api::find_condition(conditions, "Failed");
             failed != nullptr && failed->status == api::ConditionStatus::True) {
    const Outcome outcome = failure_of(o, *failed);
    end(status, Phase::Failed, outcome.reason, outcome.message, now);
    status.exit_code = outcome.exit_code;
  } else {
    const Outcome outcome = progress_of(o, status.components);
    status.phase = outcome.phase;
    status.reason = outcome.reason;
    status.message = outcome.message;
  }
}

// The server will not have it, until somebody changes a quota or a rule: then it is tried again.
void wait_for_leave(const Observed& o, Plan& plan, ExperimentStatus& status) {
  status.phase = Phase::Pending;
  status.reason = "Refused";
  status.message = operators::text_of(*o.refused);
  operators::report_refusal(ref_to(o.experiment), *o.refused, "FailedCreate", plan);
}

std::string proxied(const api::Pod& pod, int port, std::string_view path) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}:{}/proxy/{}", pod.meta.ns(), pod.meta.name(),
                     port, path);
}

std::map<std::string, std::string> links_of(const Observed& o) {
  std::map<std::string, std::string> links;
  if (o.tensorboard != nullptr)
    links["tensorboard"] = proxied(*o.tensorboard, kTensorBoardPort, "");
  const auto& debug = o.experiment.spec.debug;
  const auto first = std::ranges::find_if(
      o.pods, [](const api::Pod* pod) { return pod->meta.labels.get(kRankLabel) == "0"; });
  if (debug && debug->jupyter && debug->jupyter->enabled && first != o.pods.end()) {
    links["jupyter"] = proxied(**first, kJupyterPort, debug->jupyter->path);
  }
  return links;
}

void create(const Compiled& compiled, const Observed& o, Plan& plan, ExperimentStatus& status) {
  plan.add(runtime::Create{compiled.kind, compiled.object});
  status.child = api::ChildReference{compiled.kind->api_version(), std::string(compiled.kind->kind),
                                     o.experiment.meta.name()};
  status.phase = Phase::Pending;
  status.reason = "Created";
  status.message = "waiting for its processes to be created";
}

void announce(const Observed& o, const ExperimentStatus& status, Plan& plan) {
  if (status.phase == o.experiment.status.phase || !status.phase) return;
  const auto type = status.phase == Phase::Failed ? Event::Type::kWarning : Event::Type::kNormal;
  plan.emit(ref_to(o.experiment), type, std::string(api::name_of(*status.phase)), status.message);
}

}  // namespace

Plan plan(const Observed& o, Time now) {
  const auto& experiment = o.experiment;
  if (experiment.meta.is_being_deleted()) return {};
  if (has_ended(experiment.status)) return after_end(o, now);

  Plan plan;
  ExperimentStatus status = experiment.status;
  status.observed_generation = experiment.meta.generation;
  if (!status.start_time) status.start_time = now;

  const auto compiled = compile(experiment, {.folders = o.folders});
  if (!compiled) {
    end(status, Phase::Failed, "InvalidSpec", compiled.error().message, now);
  } else if (o.child != nullptr && !is_ours(*o.child, experiment)) {
    end(status, Phase::Failed, "NameTaken",
        fmt::format("a {} of this name exists and belongs to somebody else; choose another name",
                    compiled->kind->kind),
        now);
  } else {
    status.components = components_of(o);
    status.folder = folder_of(experiment, o.folders);
    status.links = links_of(o);
    if (o.child != nullptr) status.restarts = o.child->status.restarts.value_or(0);
    if (experiment.spec.cancel.value_or(false)) {
      cancel(o, plan, status, now);
    } else if (o.child != nullptr) {
      follow(o, status, now);
      if (compiled->tensorboard && o.tensorboard == nullptr && !has_ended(status)) {
        plan.add(runtime::Create{&kube::kinds::kPod, *compiled->tensorboard});
      }
    } else if (status.child) {
      end(status, Phase::Failed, "ChildDeleted",
          fmt::format("its {} was deleted", status.child->kind), now);
    } else if (o.refused != nullptr) {
      wait_for_leave(o, plan, status);
    } else {
      create(*compiled, o, plan, status);
    }
  }
  if (o.refused == nullptr) announce(o, status, plan);
  plan.set_status(ref_to(experiment), api::encode(experiment.status), api::encode(status));
  return plan;
}

}  // namespace grapnel::experiment
