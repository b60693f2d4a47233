#include "local/builtin/namespaces/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {
namespace {

namespace kinds = kube::kinds;
using runtime::Manager;
using runtime::Plan;

constexpr seconds kLookAgain{2};
constexpr std::string_view kCertificate = "kube-root-ca.crt";

struct Certificate {
  kube::Meta meta;
  std::string text;
  bool operator==(const Certificate&) const = default;
};

Result<Certificate> decode_certificate(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  Certificate certificate{.meta = std::move(*meta)};
  const auto data = object.find("data");
  const auto text = data ? data->find("ca.crt") : std::nullopt;
  if (text) certificate.text = text->as_string().value_or("");
  return certificate;
}

// The namespace of an object, as a key.
template <class T>
std::vector<kube::Key> namespace_of(const T& object) {
  return {kube::Key{Interned(), std::string(object.meta.ns())}};
}

void add_furniture(Manager& manager, runtime::Informer<Namespace>& namespaces,
                   std::string authority_pem) {
  auto& accounts = manager.add_informer<AnyObject>(
      {.kind = kinds::kServiceAccount, .filter = {.field_selector = "metadata.name=default"}},
      decode_any_object);
  auto& certificates = manager.add_informer<Certificate>(
      {.kind = kinds::kConfigMap,
       .filter = {.field_selector = fmt::format("metadata.name={}", kCertificate)}},
      decode_certificate);
  auto plan = [&, authority_pem = std::move(authority_pem)](
                  const kube::Key& key, Time, const runtime::Refusal*) -> std::optional<Plan> {
    const auto ns = namespaces.cache().get(key);
    if (!ns) return std::nullopt;
    NamespaceFurniture observed{.ns = *ns};
    observed.has_account = accounts.cache().get({Interned(key.name), "default"}) != nullptr;
    const auto found = certificates.cache().get({Interned(key.name), std::string(kCertificate)});
    if (found) {
      observed.certificate = found->text;
      observed.certificate_uid = found->meta.uid;
    }
    return local::plan(observed, authority_pem);
  };
  auto& controller = manager.add_controller(
      {.name = "namespace-furniture", .kind = &kinds::kNamespace, .plan = std::move(plan)});
  manager.watch(namespaces, controller);
  manager.watch_mapped<AnyObject>(accounts, controller, namespace_of<AnyObject>);
  manager.watch_mapped<Certificate>(certificates, controller, namespace_of<Certificate>);
}

}  // namespace

void add_namespaces(Manager& manager, AllObjects& objects, std::string authority_pem,
                    std::function<void(Json)> finalize) {
  auto& namespaces = manager.add_informer<Namespace>({.kind = kinds::kNamespace}, decode_namespace);
  auto plan = [&, finalize = std::move(finalize)](const kube::Key& key, Time now,
                                                  const runtime::Refusal*) -> std::optional<Plan> {
    const auto ns = namespaces.cache().get(key);
    if (!ns) return std::nullopt;
    NamespaceObserved observed{.ns = *ns, .knows_all = objects.complete()};
    std::vector<AllObjects::Found> content;
    if (ns->meta.is_being_deleted()) content = objects.in_namespace(key.name);
    for (const auto& one : content) {
      observed.content.push_back({&one.kind->kind, &one.object->meta});
    }
    auto planned = local::plan(observed, now);
    if (planned.finalized) {
      finalize(std::move(*planned.finalized));
      planned.plan.look_again_in(kLookAgain);
    }
    return std::move(planned.plan);
  };
  auto& controller = manager.add_controller(
      {.name = "namespace", .kind = &kinds::kNamespace, .plan = std::move(plan)});
  manager.watch(namespaces, controller);
  objects.on_kind(
      [&controller](AllObjects::Followed& kind) { controller.use(kind.informer->cache()); });
  objects.on_change(
      [&](const AllObjects::Followed&, const AnyObject* before, const AnyObject* after) {
        const auto& ns = (after != nullptr ? after : before)->meta.key.ns;
        if (ns.empty()) return;
        const kube::Key key{Interned(), ns.str()};
        const auto known = namespaces.cache().get(key);
        if (known && known->meta.is_being_deleted()) controller.enqueue(key);
      });
  add_furniture(manager, namespaces, std::move(authority_pem));
}

}  // namespace grapnel::local
