#include "controllers/controllers.h"

#include "base/async.h"
#include "base/strings.h"

namespace grapnel::controllers {
namespace {

// What a kind's plans write, and what they need for it.
void add_writes(const OurKind& kind, std::vector<Permission>& all) {
  const kube::Kind& own = kind.type.kind;
  // To own an object that blocks the owner's deletion takes the right to set the owner's
  // finalizers, on clusters that enforce it.
  std::vector<Permission> writes{
      {own, "", {"delete"}}, {own, "status", {"patch"}}, {own, "finalizers", {"update"}}};
  writes.insert(writes.end(), kind.writes.begin(), kind.writes.end());
  for (Permission& write : writes) {
    // After an answer that was lost, what stands there is read.
    if (write.subresource.empty()) all.push_back({write.kind, "", {"get"}});
    all.push_back(std::move(write));
  }
}

}  // namespace

void add_controllers(runtime::Manager& manager, const WiringOptions& options,
                     std::vector<const OurKind*> kinds) {
  if (kinds.empty()) kinds.assign(our_kinds().begin(), our_kinds().end());
  Wiring wiring(manager, options);
  for (const OurKind* kind : kinds) kind->add(wiring);
}

Result<std::vector<const OurKind*>> parse_controllers(std::string_view names) {
  std::vector<const OurKind*> out;
  for (const auto name : split(names, ',')) {
    const OurKind* found = find_controller(name);
    if (found == nullptr) {
      return fail(Reason::kUsage, "unknown controller '{}'; there are {}", name,
                  controller_names(", "));
    }
    out.push_back(found);
  }
  return out;
}

std::vector<Permission> permissions() {
  // None of them is started: they are only asked what they watch.
  boost::asio::io_context loop(1);
  kube::Client nowhere(nullptr, nullptr, {});
  Random random(0);
  runtime::Manager manager(loop.get_executor(), nowhere, system_clock(), random, {});
  add_controllers(manager, {});
  std::vector<Permission> all;
  for (const auto& informer : manager.informers()) {
    all.push_back({informer->kind(), "", {"list", "watch"}});
  }
  for (const OurKind* kind : our_kinds()) add_writes(*kind, all);
  return all;
}

std::vector<Json> crds() {
  std::vector<Json> out;
  for (const OurKind* kind : our_kinds()) out.push_back(kind->type.crd());
  return out;
}

}  // namespace grapnel::controllers
