// JobSet: jobset.x-k8s.io/v1alpha2.
#include "api/jobset.h"

#include "controllers/kinds.h"
#include "controllers/wiring.h"
#include "operators/jobset/defaults.h"
#include "operators/jobset/gang.h"
#include "operators/jobset/names.h"
#include "operators/jobset/plan.h"
#include "operators/jobset/status.h"
#include "operators/jobset/validate.h"

namespace grapnel::controllers {
namespace {

namespace kinds = kube::kinds;
using jobset::keys::kJobSetName;

// Only the name and the JobSet it belongs to: planners ask no more of a claim.
struct Claim {
  kube::Meta meta;
  bool operator==(const Claim&) const = default;
};

Result<Claim> decode_claim(JsonView object) {
  auto meta = kube::decode_meta(object, {.labels = {kJobSetName}});
  if (!meta) return fail(meta.error());
  return Claim{std::move(*meta)};
}

Result<api::Service> decode_service(JsonView object) {
  return api::decode_service(object);
}

Result<api::Node> decode_node(JsonView object) {
  return api::decode_node(object);
}

// One for each JobSet that has ended, until it is deleted.
std::vector<runtime::CacheGauge::Sample> terminal_states(
    const runtime::Informer<api::JobSet>& jobsets) {
  std::vector<runtime::CacheGauge::Sample> ended;
  for (const auto& jobset : jobsets.cache().all()) {
    if (jobset->status.terminal_state.empty()) continue;
    auto labels = jobset::metric_labels(*jobset);
    labels.emplace_back("terminal_state", jobset->status.terminal_state);
    ended.push_back({.labels = std::move(labels), .value = 1});
  }
  return ended;
}

void add(Wiring& wiring) {
  using jobset::Observed;
  auto& jobsets =
      wiring.informer<api::JobSet>(kinds::kJobSet, leniently<api::JobSet, api::decode_jobset>);
  auto& jobs = wiring.informer<jobset::ChildJob>(kinds::kJob, jobset::decode_child_job,
                                                 {.labels = std::string(kJobSetName)});
  auto& services = wiring.informer<api::Service>(kinds::kService, decode_service);
  auto& claims = wiring.informer<Claim>(kinds::kPersistentVolumeClaim, decode_claim,
                                        {.labels = std::string(kJobSetName)});
  auto& pods = wiring.informer<api::Pod>(kinds::kPod, jobset::decode_child_pod,
                                         {.labels = std::string(kJobSetName)});
  auto& nodes = wiring.informer<api::Node>(kinds::kNode, decode_node);

  // Thousands of Jobs change for minutes on end: planning shall take half a percent of that time.
  auto controller = wiring.controller<Observed>({.name = "jobset", .rest_factor = 200}, jobsets);
  controller.owns(jobs, &Observed::jobs);
  controller.owns(services);
  controller.gathers([&services, strict = wiring.options().strict](
                         Observed& observed, const api::JobSet& jobset, Held& held) {
    const auto& subdomain = jobset.spec.network.subdomain;
    const auto& name = subdomain.empty() ? jobset.meta.name() : subdomain;
    observed.strict = strict;
    observed.service = held.keep(services.cache().get({jobset.meta.key.ns, name}));
  });
  controller.labelled(claims, kJobSetName);
  controller.gathers([&claims](Observed& observed, const api::JobSet& jobset, Held& held) {
    for (auto& claim : find_labelled(claims, kJobSetName, jobset.meta)) {
      observed.claims.push_back(held.keep(std::move(claim))->meta.key.name);
    }
  });
  controller.labelled(pods, kJobSetName, jobset::concerns_planner);
  controller.reads(nodes);
  controller.gathers([&pods, &nodes](Observed& observed, const api::JobSet& jobset, Held& held) {
    if (!jobset::needs_pods(jobset)) return;
    for (auto& pod : find_labelled(pods, kJobSetName, jobset.meta)) {
      observed.pods.push_back(held.keep(std::move(pod)));
    }
    // The cache keeps the node: nothing changes in it while a plan is made.
    observed.find_node = [&nodes](std::string_view name) {
      return nodes.cache().get({Interned(), std::string(name)}).get();
    };
  });
  controller.plans(jobset::plan);
  wiring.manager().add_gauge({.name = "jobset_terminal_state",
                              .help = "JobSets that have ended and still exist, by how they ended.",
                              .read = [&jobsets] { return terminal_states(jobsets); }});
}

}  // namespace

OurKind jobset_kind() {
  return {
      .controller = "jobset",
      .type = {.kind = kinds::kJobSet,
               .crd = api::jobset_crd,
               .reference_page = api::jobset_reference_page},
      .rules = rules<api::JobSet>({.decode = api::decode_jobset,
                                   .defaulted = jobset::defaulted_object,
                                   .validate = jobset::validate,
                                   .validate_update = jobset::validate_update,
                                   .validate_strictly = jobset::validate_strictly,
                                   .validate_update_strictly = jobset::validate_update_strictly}),
      .writes = {{kinds::kJob, "", {"create", "patch", "delete"}},
                 {kinds::kJob, "status", {"patch"}},
                 {kinds::kService, "", {"create"}},
                 {kinds::kPersistentVolumeClaim, "", {"create"}},
                 {kinds::kPod, "", {"patch", "delete"}},
                 {kinds::kPod, "status", {"patch"}},
                 {jobset::kPodGroup, "", {"create", "patch"}}},
      // Of pods only those of JobSets, and of these only those that have something to be changed.
      .mutates = {{.path = "/mutate--v1-pod",
                   .kind = kinds::kPod,
                   .selector = JsonObject{{"matchExpressions",
                                           JsonArray{JsonObject{{"key", kJobSetName},
                                                                {"operator", "Exists"}}}}},
                   .condition = jobset::needs_admission_expression(),
                   .condition_name = "is-to-be-changed",
                   .review = [](const runtime::Admitted& request) -> Result<Json> {
                     return jobset::admitted_pod(request.object);
                   }}},
      .add = add,
  };
}

}  // namespace grapnel::controllers
