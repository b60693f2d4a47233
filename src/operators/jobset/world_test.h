// A small language for the planner's tables: a JobSet from the text of its spec, Jobs by what
// became of them, and a plan as lines of text.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "operators/jobset/names.h"
#include "operators/jobset/plan.h"

namespace grapnel::jobset::testing {

inline const Time kNow = *parse_time("2026-03-01T12:00:00Z");
inline constexpr std::string_view kUid = "8c5b6d0e-0000-4000-8000-000000000001";

inline Json json(std::string_view text) {
  auto parsed = parse_json(text);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message) << "\n" << text;
  return parsed ? *parsed : Json();
}

// {"name": "w", "replicas": 2, "template": …}, with more members of the entry given as text.
inline std::string replicated(std::string_view name, int replicas, std::string_view more = "",
                              std::string_view job_spec = "") {
  return fmt::format(
      R"({{"name":"{}","replicas":{}{},"template":{{"spec":{{{}"template":{{"spec":
      {{"containers":[{{"name":"main","image":"busybox"}}]}}}}}}}}}})",
      name, replicas, more, job_spec);
}

inline Json jobset_object(std::string_view spec, std::string_view status = "{}",
                          std::string_view metadata = "") {
  return json(fmt::format(
      R"({{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{{"name":"train",
      "namespace":"ml","uid":"{}","resourceVersion":"7"{}}},"spec":{},"status":{}}})",
      kUid, metadata, spec, status));
}

inline api::JobSet make_jobset(std::string_view spec, std::string_view status = "{}",
                               std::string_view metadata = "") {
  auto decoded = api::decode_jobset(jobset_object(spec, status, metadata));
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message);
  return decoded ? *decoded : api::JobSet();
}

// A Job of the JobSet "train", as a fluent value: job("w", 0).ready().
class job {
 public:
  job(std::string_view replicated, int index) {
    job_.meta.key = {Interned("ml"), job_name("train", replicated, index)};
    job_.meta.uid = kube::Uid(job_.meta.name() + "-uid");
    job_.meta.resource_version = 3;
    job_.place = JobPlace{.replicated_job = Interned(replicated), .index = index};
    job_.completions = 1;
  }
  job& pods(int n) {
    job_.parallelism = n;
    job_.completions = n;
    return *this;
  }
  job& labelled(int index) {
    job_.place->index = index;
    return *this;
  }
  job& attempt(int n) {
    job_.place->restart_attempt = n;
    return *this;
  }
  job& own_attempt(int n) {
    job_.place->job_restart_attempt = n;
    return *this;
  }
  job& running() {
    job_.active = job_.parallelism;
    return *this;
  }
  job& ready() {
    running();
    job_.ready = job_.parallelism;
    return *this;
  }
  job& succeeded() { return condition("Complete", "CompletionsReached", "", 0); }
  job& failed(std::string_view reason = "BackoffLimitExceeded", int second = 0,
              std::string_view message = "") {
    return condition("Failed", reason, message, second);
  }
  job& failing(std::string_view reason, int second, std::string_view message = "") {
    running();
    return condition("FailureTarget", reason, message, second);
  }
  job& suspended() {
    job_.suspended = true;
    job_.scheduling = JsonObject();
    return *this;
  }
  job& started() {
    job_.start_time = kNow - minutes(10);
    return *this;
  }
  // api::kSchedulingFields of its pods.
  job& runs_where(std::string_view pod_spec) {
    job_.scheduling = json(pod_spec);
    return *this;
  }
  job& deleting_since(Duration ago) {
    job_.meta.deleted = kNow - ago;
    job_.meta.finalizers.emplace_back("foregroundDeletion");
    return *this;
  }
  job& unlabelled() {
    job_.place.reset();
    return *this;
  }
  const ChildJob& get() const { return job_; }

 private:
  job& condition(std::string_view type, std::string_view reason, std::string_view message,
                 int second) {
    job_.conditions.push_back({.type = Interned(type),
                               .is_true = true,
                               .reason = Interned(reason),
                               .message = std::string(message),
                               .last_transition_time = kNow - minutes(1) + seconds(second)});
    return *this;
  }
  ChildJob job_;
};

inline std::string condition_text(const Json& condition) {
  return fmt::format("{}={}/{}", string_or(find(condition, "type")),
                     string_or(find(condition, "status")), string_or(find(condition, "reason")));
}

// Conditions first, then the rest by name. The counts of Jobs have tests of their own.
inline void add_status(std::vector<std::string>& lines, const Json& status) {
  if (const Json* conditions = find(status, "conditions")) {
    for (const Json& c : conditions->as_array()) lines.push_back("condition " + condition_text(c));
  }
  std::set<std::string> rest;
  for (const auto& [key, value] : status.as_object()) {
    if (key == "conditions" || key == "replicatedJobsStatus") continue;
    rest.insert(fmt::format("status {}={}", std::string_view(key), to_text(value)));
  }
  lines.insert(lines.end(), rest.begin(), rest.end());
}

struct WriteText {
  std::string operator()(const runtime::Create& c) const {
    return fmt::format("create {} {}", c.kind->kind, c.object.key().name);
  }
  std::string operator()(const runtime::Patch& p) const {
    return fmt::format("patch {}{} {}", p.target.key.name,
                       p.subresource.empty() ? "" : "/" + p.subresource, to_text(p.body));
  }
  std::string operator()(const runtime::Apply&) const { return "apply"; }
  std::string operator()(const runtime::Delete& d) const {
    const bool foreground = d.propagation == runtime::Delete::Propagation::kForeground;
    return fmt::format("delete {} {}{}", d.target.kind->kind, d.target.key.name,
                       foreground ? "" : " in the background");
  }
};

// Stages are parted by "then".
inline std::vector<std::string> lines_of(const runtime::Plan& plan) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    if (i > 0 && !plan.stages[i].empty()) lines.push_back("then");
    for (const auto& write : plan.stages[i]) lines.push_back(std::visit(WriteText(), write));
  }
  if (plan.status) add_status(lines, *find(plan.status->body, "status"));
  for (const auto& event : plan.events) {
    lines.push_back(fmt::format("event {} {}: {}",
                                event.type == runtime::Event::Type::kNormal ? "Normal" : "Warning",
                                event.reason, event.message));
  }
  for (const auto& count : plan.counts) lines.push_back("count " + count.metric);
  if (plan.look_again) {
    lines.push_back(fmt::format("again in {}s", plan.look_again->count() / 1'000'000));
  }
  return lines;
}

struct World {
  api::JobSet jobset;
  std::deque<ChildJob> jobs;
  bool has_service = true;
  bool strict = false;
  api::Service service{};

  Observed observed() const {
    Observed o{.jobset = jobset, .service = has_service ? &service : nullptr, .strict = strict};
    for (const auto& j : jobs) o.jobs.push_back(&j);
    return o;
  }
  runtime::Plan plan() const { return jobset::plan(observed(), kNow); }
};

}  // namespace grapnel::jobset::testing
