#include "local/builtin/definitions/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {
namespace {

namespace kinds = kube::kinds;
using runtime::Plan;

struct Definition {
  kube::Meta meta;
  std::string group;
  std::string kind;
  bool operator==(const Definition&) const = default;
};

Result<Definition> decode_definition(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  Definition definition{.meta = std::move(*meta)};
  const auto spec = object.find("spec");
  const auto text = [](std::optional<JsonView> value) {
    return std::string(value ? value->as_string().value_or("") : "");
  };
  if (!spec) return definition;
  definition.group = text(spec->find("group"));
  const auto names = spec->find("names");
  if (names) definition.kind = text(names->find("kind"));
  return definition;
}

}  // namespace

void add_definitions(runtime::Manager& manager, AllObjects& objects) {
  auto& definitions = manager.add_informer<Definition>({.kind = kinds::kCustomResourceDefinition},
                                                       decode_definition);
  auto plan = [&](const kube::Key& key, Time, const runtime::Refusal*) -> std::optional<Plan> {
    const auto definition = definitions.cache().get(key);
    if (!definition) return std::nullopt;
    DefinitionObserved observed{.meta = definition->meta, .knows_all = objects.complete()};
    const auto* kind = objects.kind(definition->group, definition->kind);
    std::vector<AllObjects::Found> found;
    if (kind != nullptr) {
      observed.kind = &kind->kind;
      found = objects.of_kind(*kind);
      for (const auto& one : found) observed.objects.push_back(&one.object->meta);
    }
    return local::plan(observed);
  };
  auto& controller = manager.add_controller(
      {.name = "definition", .kind = &kinds::kCustomResourceDefinition, .plan = std::move(plan)});
  manager.watch(definitions, controller);
  definitions.cache().add_handler(
      [&objects](const Definition*, const Definition*) { objects.look_again(); });
  objects.on_kind(
      [&controller](AllObjects::Followed& kind) { controller.use(kind.informer->cache()); });
  objects.on_change(
      [&controller](const AllObjects::Followed& kind, const AnyObject*, const AnyObject* after) {
        if (after != nullptr || kind.kind.group.empty()) return;
        controller.enqueue({Interned(), fmt::format("{}.{}", kind.kind.plural, kind.kind.group)});
      });
}

}  // namespace grapnel::local
