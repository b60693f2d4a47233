#include "tests/example_kind/kind.h"

#include "controllers/wiring.h"
#include "tests/example_kind/plan.h"

namespace example {
namespace {

using namespace grapnel;

Result<Card> decode_card(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  return Card{std::move(*meta)};
}

void add(controllers::Wiring& wiring) {
  auto& greetings = wiring.informer<Greeting>(kGreeting, controllers::leniently<Greeting>);
  auto& cards = wiring.informer<Card>(kube::kinds::kConfigMap, decode_card);
  auto controller = wiring.controller<Observed>({.name = "greeting"}, greetings);
  controller.owns(cards, &Observed::cards);
  controller.plans(plan);
}

}  // namespace

controllers::OurKind greeting_kind() {
  return {
      .controller = "greeting",
      .type = controllers::described<Greeting>(),
      .rules = controllers::rules<Greeting>({.validate = validate}),
      .writes = {{kube::kinds::kConfigMap, "", {"create", "delete"}}},
      .add = add,
  };
}

}  // namespace example
