#include "operators/experiment/plan.h"

#include <algorithm>

#include "operators/common/object.h"
#include "operators/common/refusal.h"
#include "operators/common/ttl.h"
#include "operators/experiment/check.h"
#include "operators/experiment/compile.h"
#include "operators/experiment/pod_template.h"
#include "operators/experiment/process.h"
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
void start_tensorboard(const Observed& o, Plan& plan) {
  const CompileOptions options{.folders = o.folders};
  if (!has_tensorboard(o.experiment, options)) return;
  plan.add(runtime::Create{&kube::kinds::kPod, tensorboard_of(o.experiment, options)});
}

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

void cancel(const Observed& o, Plan& plan, ExperimentStatus& status, Time now) {
  const bool is_stopping = !o.child || o.child->is_suspended;
  if (!is_stopping) plan.add(o.child->suspension());
  if (is_stopping && std::ranges::all_of(o.pods, &api::Pod::is_finished)) {
    end(status, Phase::Cancelled, "Cancelled", "cancelled on request", now);
  } else {
    status.reason = "Cancelling";
    status.message = "stopping its processes";
  }
}

void follow(const Observed& o, ExperimentStatus& status, Time now) {
  if (o.child->ended) {
    const Outcome outcome = outcome_of(*o.child->ended, o);
    end(status, outcome.phase, outcome.reason, outcome.message, now);
    status.exit_code = outcome.exit_code;
  } else {
    const Outcome outcome = progress_of(o, status.components);
    status.phase = outcome.phase;
    status.reason = outcome.reason;
    status.message = outcome.message;
  }
}

// A quota or a right may change: then the child is tried again. That it breaks the rules of its
// kind does not heal by itself, and neither it nor those who wait for it would ever know.
void report_refusal(const Observed& o, Plan& plan, ExperimentStatus& status, Time now) {
  status.phase = Phase::Pending;
  status.reason = "Refused";
  status.message = operators::text_of(*o.refused);
  operators::report_refusal(ref_to(o.experiment), *o.refused, "FailedCreate", plan);
  const auto& kind = child_kind(o.experiment.spec.op);
  if (operators::is_creation_of(kind, *o.refused) && o.refused->error.is(Reason::kInvalid)) {
    end(status, Phase::Failed, status.reason, status.message, now);
  }
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
      o.pods, [](const api::Pod* pod) { return process_id(pod->meta).rank == 0; });
  if (debug && debug->jupyter && debug->jupyter->enabled && first != o.pods.end()) {
    links["jupyter"] = proxied(**first, kJupyterPort, debug->jupyter->path);
  }
  return links;
}

// The garbage collector takes its child away, and that wakes us.
void wait_for_earlier(const Observed& o, ExperimentStatus& status, Time now) {
  if (o.experiment.spec.cancel.value_or(false)) {
    return end(status, Phase::Cancelled, "Cancelled", "cancelled on request", now);
  }
  status.phase = Phase::Pending;
  status.reason = "NameTaken";
  status.message = fmt::format("waiting until the {} of an earlier experiment of this name is gone",
                               o.child->ref.kind->kind);
}

api::ChildReference reference_to(const Observed& o, const kube::Kind& kind) {
  return {kind.api_version(), std::string(kind.kind), o.experiment.meta.name()};
}

void create(const Components& components, const Observed& o, Plan& plan, ExperimentStatus& status) {
  const Compiled compiled = compile(o.experiment, components, {.folders = o.folders});
  plan.add(runtime::Create{compiled.kind, compiled.object});
  status.child = reference_to(o, *compiled.kind);
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

  const auto components = check(experiment);
  if (!components) {
    end(status, Phase::Failed, "InvalidSpec", components.error().message, now);
  } else if (o.child && o.child->owner != experiment.meta.uid && o.child->is_of_experiment) {
    wait_for_earlier(o, status, now);
  } else if (o.child && o.child->owner != experiment.meta.uid) {
    end(status, Phase::Failed, "NameTaken",
        fmt::format("a {} of this name exists and belongs to somebody else; choose another name",
                    o.child->ref.kind->kind),
        now);
  } else {
    status.components = statuses_of(*components, o);
    status.folder = folder_of(experiment, o.folders);
    status.links = links_of(o);
    if (o.child) {
      // Again: what was written at its creation may not have arrived, and a child that is deleted
      // must not be made anew.
      status.child = reference_to(o, *o.child->ref.kind);
      status.restarts = o.child->restarts;
    }
    if (experiment.spec.cancel.value_or(false)) {
      cancel(o, plan, status, now);
    } else if (o.child) {
      follow(o, status, now);
      if (o.tensorboard == nullptr && !has_ended(status)) start_tensorboard(o, plan);
    } else if (status.child) {
      end(status, Phase::Failed, "ChildDeleted",
          fmt::format("its {} was deleted", status.child->kind), now);
    } else if (o.refused != nullptr) {
      report_refusal(o, plan, status, now);
    } else {
      create(*components, o, plan, status);
    }
  }
  if (o.refused == nullptr) announce(o, status, plan);
  plan.set_status(ref_to(experiment), api::encode(experiment.status), api::encode(status));
  return plan;
}

}  // namespace grapnel::experiment
