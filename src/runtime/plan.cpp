#include "runtime/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "document/patch.h"

namespace grapnel::runtime {
namespace {

std::string describe(const ObjectRef& ref) {
  return fmt::format("{} {}", ref.kind->kind, ref.key.text());
}

kube::Key key_of(const Json& object) {
  return {Interned(string_or(at(object, "metadata", "namespace"))),
          std::string(string_or(at(object, "metadata", "name")))};
}

struct Words {
  std::string operator()(const Create& create) const {
    const std::string what = create.subresource.empty() ? "" : " (" + create.subresource + ")";
    return "create " + describe(target_of(create)) + what;
  }
  std::string operator()(const Patch& patch) const {
    const std::string what = patch.subresource.empty() ? "" : " (" + patch.subresource + ")";
    return "patch " + describe(patch.target) + what + " " + to_text(patch.body);
  }
  std::string operator()(const Apply& apply) const { return "apply " + describe(target_of(apply)); }
  std::string operator()(const Delete& erase) const { return "delete " + describe(erase.target); }
};

}  // namespace

NewObject::NewObject(Json whole) : key_(key_of(whole)), whole_(std::move(whole)) {}

NewObject::NewObject(kube::Key key, std::function<Json()> make)
    : key_(std::move(key)), make_(std::move(make)) {}

bool operator==(const ObjectRef& a, const ObjectRef& b) {
  return *a.kind == *b.kind && a.key == b.key && a.uid == b.uid;
}

void Plan::add(Write write) {
  if (stages.empty()) stages.emplace_back();
  stages.back().push_back(std::move(write));
}

void Plan::then() {
  if (!stages.empty() && !stages.back().empty()) stages.emplace_back();
}

void Plan::add(Plan other) {
  if (stages.size() < other.stages.size()) stages.resize(other.stages.size());
  for (size_t i = 0; i < other.stages.size(); ++i) {
    std::ranges::move(other.stages[i], std::back_inserter(stages[i]));
  }
  if (other.status) {
    status = std::move(other.status);
    between_counts = other.between_counts;
  }
  std::ranges::move(other.events, std::back_inserter(events));
  std::ranges::move(other.counts, std::back_inserter(counts));
  std::ranges::move(other.calls, std::back_inserter(calls));
  std::ranges::move(other.questions, std::back_inserter(questions));
  if (other.look_again) look_again_in(*other.look_again);
}

void Plan::look_again_in(Duration delay) {
  look_again = look_again ? std::min(*look_again, delay) : delay;
}

void Plan::ask(Question question) {
  questions.push_back(std::move(question));
}

void Plan::call(Call call) {
  calls.push_back(std::move(call));
}

void Plan::emit(ObjectRef regarding, Event::Type type, std::string reason, std::string message,
                std::string action) {
  events.push_back(
      {std::move(regarding), type, std::move(reason), std::move(action), std::move(message)});
}

void Plan::set_status(ObjectRef target, const Json& before, const Json& after) {
  auto difference = merge_patch_between(before, after);
  if (!difference) return;
  status = Patch{.target = std::move(target),
                 .body = JsonObject{{"status", std::move(*difference)}},
                 .subresource = "status"};
}

bool Plan::empty() const {
  return std::ranges::all_of(stages, [](const auto& stage) { return stage.empty(); }) && !status &&
         calls.empty() && events.empty() && counts.empty();
}

ObjectRef target_of(const Write& write) {
  struct Target {
    ObjectRef operator()(const Create& create) const {
      return {.kind = create.kind, .key = create.object.key(), .uid = {}};
    }
    ObjectRef operator()(const Patch& patch) const { return patch.target; }
    ObjectRef operator()(const Apply& apply) const {
      return {.kind = apply.kind, .key = key_of(apply.object), .uid = apply.uid};
    }
    ObjectRef operator()(const Delete& erase) const { return erase.target; }
  };
  return std::visit(Target(), write);
}

std::string describe(const Write& write) {
  return std::visit(Words(), write);
}

std::string describe(const Plan& plan) {
  std::string text;
  for (const auto& stage : plan.stages) {
    for (const auto& write : stage) text += std::visit(Words(), write) + "\n";
  }
  if (plan.status) text += Words()(*plan.status) + "\n";
  for (const auto& call : plan.calls) {
    text += fmt::format("call {} {}: {}\n", call.executor, call.id, to_text(call.what));
  }
  for (const auto& event : plan.events) {
    text +=
        fmt::format("event {} {}: {}\n", describe(event.regarding), event.reason, event.message);
  }
  return text;
}

}  // namespace grapnel::runtime
