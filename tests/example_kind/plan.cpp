#include "tests/example_kind/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "operators/common/object.h"

namespace example {
namespace {

using namespace grapnel;
using runtime::Plan;

// A name is a function of identity: created twice, it is one object.
std::string card_name(const Greeting& greeting, int32_t copy) {
  return fmt::format("{}-{}", greeting.meta.name(), copy);
}

JsonObject card(const Greeting& greeting, int32_t copy) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", JsonObject{{"name", card_name(greeting, copy)},
                                  {"namespace", greeting.meta.ns()},
                                  {"ownerReferences", operators::owned_by(greeting)}}},
          {"data", JsonObject{{"text", greeting.spec.text}}}};
}

}  // namespace

Plan plan(const Observed& o, Time) {
  Plan plan;
  if (o.greeting.meta.is_being_deleted()) return plan;
  const auto find = [&](const std::string& name) {
    return std::ranges::find(o.cards, name, [](const Card* card) { return card->meta.name(); });
  };
  std::vector<std::string> wanted;
  for (int32_t copy = 0; copy < o.greeting.spec.copies; ++copy) {
    wanted.push_back(card_name(o.greeting, copy));
    if (find(wanted.back()) != o.cards.end()) continue;
    plan.add(runtime::Create{&kube::kinds::kConfigMap, card(o.greeting, copy)});
  }
  for (const Card* card : o.cards) {
    if (std::ranges::find(wanted, card->meta.name()) != wanted.end()) continue;
    plan.add(runtime::Delete{{&kube::kinds::kConfigMap, card->meta.key, card->meta.uid}});
  }
  GreetingStatus status{.cards = static_cast<int32_t>(o.cards.size())};
  plan.set_status(operators::ref_to(o.greeting), api::encode(o.greeting.status),
                  api::encode(status));
  return plan;
}

std::vector<Cause> validate(const Greeting& greeting) {
  if (greeting.spec.text.find('\n') == std::string::npos) return {};
  return {{.field = "spec.text", .message = "Invalid value: must be a single line"}};
}

bool Greeting::operator==(const Greeting& other) const {
  return meta == other.meta && api::equal_values(spec, other.spec) &&
         api::equal_values(status, other.status);
}

}  // namespace example
