// Keeps one ConfigMap, a card, for each copy of a Greeting. Pure.
#pragma once

#include <vector>

#include "runtime/plan.h"
#include "tests/example_kind/greeting.h"

namespace example {

// A ConfigMap, of which the planner reads nothing but that it exists.
struct Card {
  grapnel::kube::Meta meta;
  bool operator==(const Card&) const = default;
};

struct Observed {
  const Greeting& greeting;
  std::vector<const Card*> cards;  // whose controller is the Greeting
  const grapnel::runtime::Refusal* refused = nullptr;
};

grapnel::runtime::Plan plan(const Observed& observed, grapnel::Time now);

// What the schema cannot say.
std::vector<grapnel::Cause> validate(const Greeting& greeting);

}  // namespace example
