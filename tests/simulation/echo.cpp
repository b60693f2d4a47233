#include "tests/simulation/echo.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace grapnel::simulation {
namespace {

using runtime::ObjectRef;
using runtime::Plan;
constexpr std::string_view kFinalizer = "example.com/echo";
constexpr std::string_view kUnbearable = "unbearable";    // the planner throws
constexpr std::string_view kOfUser = "example.com/user";  // a finalizer of somebody else's
const kube::Kind& kConfigMap = kube::kinds::kConfigMap;

std::string child_name(std::string_view echo, int64_t index) {
  return fmt::format("{}-{}", echo, index);
}

// The number at the end of a child's name.
int64_t index_of(std::string_view name) {
  int64_t index = -1;
  const auto digits = name.substr(name.rfind('-') + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), index);
  return index;
}

std::string text_at(JsonView object, std::string_view outer, std::string_view inner) {
  const auto part = object.find(outer);
  const auto value = part ? part->find(inner) : std::nullopt;
  return std::string(value ? value->as_string().value_or("") : "");
}

Json child_of(const Echo& echo, int64_t index) {
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata",
       JsonObject{{"namespace", echo.meta.ns()},
                  {"name", child_name(echo.meta.name(), index)},
                  {"labels", JsonObject{{kEchoLabel, echo.meta.name()}}},
                  {"ownerReferences", JsonArray{JsonObject{{"apiVersion", kEcho.api_version()},
                                                           {"kind", kEcho.kind},
                                                           {"name", echo.meta.name()},
                                                           {"uid", echo.meta.uid.text()},
                                                           {"controller", true}}}}}},
      {"data", JsonObject{{"value", echo.value}}}};
}

ObjectRef ref(const kube::Kind& kind, const kube::Meta& meta) {
  return {&kind, meta.key, meta.uid};
}

Plan finish_deletion(const EchoObserved& o) {
  Plan p;
  if (o.echo->meta.finalizers.empty()) return p;
  for (const auto& child : o.children) {
    if (!child->meta.is_being_deleted()) p.add(runtime::Delete{ref(kConfigMap, child->meta)});
  }
  if (o.children.empty()) {
    p.add(runtime::Patch{.target = ref(kEcho, o.echo->meta),
                         .body = JsonObject{{"metadata", JsonObject{{"finalizers", nullptr}}}},
                         .if_version = o.echo->meta.resource_version});
  }
  return p;
}

Plan hold(const Echo& echo) {
  Plan p;
  p.add(runtime::Patch{
      .target = ref(kEcho, echo.meta),
      .body = JsonObject{{"metadata", JsonObject{{"finalizers", JsonArray{kFinalizer}}}}},
      .if_version = echo.meta.resource_version});
  return p;
}

}  // namespace

Result<Echo> decode_echo(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  Echo echo{.meta = std::move(*meta), .value = text_at(object, "spec", "value")};
  const auto spec = object.find("spec");
  const auto replicas = spec ? spec->find("replicas") : std::nullopt;
  if (replicas && !replicas->as_int()) return fail(Reason::kDecode, "replicas is no number");
  echo.replicas = replicas ? *replicas->as_int() : 0;
  const auto status = object.find("status");
  echo.status = status ? status->to_json() : Json(JsonObject());
  return echo;
}

Result<EchoChild> decode_echo_child(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  return EchoChild{.meta = std::move(*meta), .value = text_at(object, "data", "value")};
}

runtime::Plan plan(const EchoObserved& o) {
  const Echo& echo = *o.echo;
  if (echo.meta.is_being_deleted()) return finish_deletion(o);
  if (echo.meta.finalizers.empty()) return hold(echo);  // and go on when that is seen

  Plan p;
  int64_t ready = 0;
  std::vector<bool> have(static_cast<size_t>(std::max<int64_t>(echo.replicas, 0)));
  for (const auto& child : o.children) {
    const int64_t index = index_of(child->meta.name());
    const bool wanted = index >= 0 && index < echo.replicas;
    if (wanted) have[static_cast<size_t>(index)] = true;
    if (child->meta.is_being_deleted()) continue;
    if (!wanted) {
      p.add(runtime::Delete{ref(kConfigMap, child->meta)});
    } else if (child->value != echo.value) {
      p.add(runtime::Patch{.target = ref(kConfigMap, child->meta),
                           .body = JsonObject{{"data", JsonObject{{"value", echo.value}}}}});
    } else {
      ++ready;
    }
  }
  for (size_t i = 0; i < have.size(); ++i) {
    if (!have[i]) p.add(runtime::Create{&kConfigMap, child_of(echo, static_cast<int64_t>(i))});
  }
  p.set_status(ref(kEcho, echo.meta), echo.status,
               JsonObject{{"ready", ready}, {"observedGeneration", echo.meta.generation}});
  return p;
}

// ---- the subject --------------------------------------------------------------------------------

namespace {

Json echo_definition() {
  const JsonObject any{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  const JsonObject schema{{"type", "object"},
                          {"properties", JsonObject{{"spec", any}, {"status", any}}}};
  const JsonObject version{{"name", kEcho.version},
                           {"served", true},
                           {"storage", true},
                           {"subresources", JsonObject{{"status", JsonObject()}}},
                           {"schema", JsonObject{{"openAPIV3Schema", schema}}}};
  return JsonObject{
      {"apiVersion", kube::kinds::kCustomResourceDefinition.api_version()},
      {"kind", kube::kinds::kCustomResourceDefinition.kind},
      {"metadata", JsonObject{{"name", fmt::format("{}.{}", kEcho.plural, kEcho.group)}}},
      {"spec", JsonObject{{"group", kEcho.group},
                          {"scope", "Namespaced"},
                          {"names", JsonObject{{"plural", kEcho.plural},
                                               {"singular", "echo"},
                                               {"kind", kEcho.kind},
                                               {"listKind", "EchoList"}}},
                          {"versions", JsonArray{version}}}}};
}

class EchoSubject final : public Subject {
 public:
  std::vector<ServedKind> kinds() const override { return {{kEcho, true}, {kConfigMap, false}}; }
  std::vector<Json> definitions() const override { return {echo_definition()}; }

  std::shared_ptr<void> install(runtime::Manager& manager, const std::string& ns) override {
    auto& echoes = manager.add_informer<Echo>({.kind = kEcho, .filter = {.ns = ns}}, decode_echo);
    // A child that has lost its label is none of ours: it must come back, or go.
    auto& children = manager.add_informer<EchoChild>(
        {.kind = kConfigMap, .filter = {.ns = ns, .label_selector = std::string(kEchoLabel)}},
        decode_echo_child);
    auto planner = [&echoes, &children](const kube::Key& key, Time,
                                        const runtime::Refusal*) -> std::optional<Plan> {
      const auto echo = echoes.cache().get(key);
      if (!echo) return std::nullopt;
      if (echo->value == kUnbearable) throw std::runtime_error("unbearable");
      return plan({echo, children.cache().controlled_by(echo->meta.uid)});
    };
    auto& controller =
        manager.add_controller({.name = "echo", .kind = &kEcho, .plan = std::move(planner)});
    manager.watch(echoes, controller);
    manager.watch_owned(children, controller);
    return nullptr;
  }

  void disturb(Server& server, Random& random, Moment moment) override {
    const std::string name(1, static_cast<char>('a' + random.below(3)));
    const auto replicas = static_cast<int64_t>(random.below(6));
    const auto value = fmt::format("v{}", random.below(100));
    const std::string echoes = collection_of(kEcho);
    const JsonObject spec{{"replicas", replicas}, {"value", value}};
    const auto children = server.all(kConfigMap);
    switch (random.below(7)) {
      case 0:
      case 1:
        server.ask("user", "POST", echoes,
                   JsonObject{{"apiVersion", kEcho.api_version()},
                              {"kind", kEcho.kind},
                              {"metadata", JsonObject{{"name", name}}},
                              {"spec", spec}});
        break;
      case 2:
      case 3:
        server.ask("user", "PATCH", echoes + "/" + name, JsonObject{{"spec", spec}});
        break;
      case 4:
        if (random.chance(0.4)) server.ask("user", "DELETE", echoes + "/" + name);
        break;
      case 5:
        if (!moment.calm) spoil(server, random, echoes + "/" + name);
        break;
      default:
        if (children.empty()) break;
        disturb_child(server, random, Json(*children[random.below(children.size())]));
    }
  }

  // Who has taken labels away puts them back in the end: without them no child can be found.
  std::optional<Duration> live(Server& server, Random& /*random*/, Moment moment) override {
    if (moment.trouble) return std::nullopt;
    for (const Json* echo : server.all(kEcho)) {
      const bool no_number = !at(*echo, "spec", "replicas")->is_int64();
      if (!no_number && string_or(at(*echo, "spec", "value")) != kUnbearable) continue;
      server.ask("user", "PATCH", path_of(kEcho, *echo),
                 JsonObject{{"spec", JsonObject{{"replicas", 2}, {"value", "good again"}}}});
      return Duration::zero();
    }
    for (const Json* child : server.all(kConfigMap)) {
      if (!is_ours(*child)) continue;
      if (label(*child, kEchoLabel).empty()) {
        label_child(server, *child, "back");
      } else if (has_finalizers(*child)) {
        hold_child(server, *child, nullptr);
      } else {
        continue;
      }
      return Duration::zero();
    }
    return std::nullopt;
  }

  std::optional<std::string> check_write(const Server& server, const WriteSeen& write) override {
    if (write.kind == kEcho && write.after != nullptr) remember(*write.after);
    if (!write.who.starts_with("operator")) return std::nullopt;
    if (write.kind == kConfigMap && write.verb == "create")
      return check_create(server, *write.after);
    if (write.kind == kConfigMap && write.verb == "delete") return check_delete(*write.before);
    if (write.kind == kEcho && write.verb == "delete") return check_release(server, *write.before);
    return std::nullopt;
  }

  std::optional<std::string> check_settled(const Server& server) override {
    size_t wanted = 0;
    for (const Json* echo : server.all(kEcho)) {
      const auto name = meta_text(*echo, "name");
      if (at(*echo, "metadata", "deletionTimestamp") != nullptr)
        return fmt::format("{} stays", name);
      const int64_t replicas = int_or(at(*echo, "spec", "replicas"));
      for (int64_t i = 0; i < replicas; ++i) {
        const Json* child = server.find(kConfigMap, {Interned("default"), child_name(name, i)});
        if (child == nullptr) return fmt::format("{}-{} is missing", name, i);
        if (string_or(at(*child, "data", "value")) != string_or(at(*echo, "spec", "value"))) {
          return fmt::format("{}-{} has another value", name, i);
        }
      }
      wanted += static_cast<size_t>(replicas);
      if (int_or(at(*echo, "status", "ready"), -1) != replicas ||
          int_or(at(*echo, "status", "observedGeneration")) !=
              int_or(at(*echo, "metadata", "generation"))) {
        return fmt::format("{} has an old status", name);
      }
    }
    const auto children = server.all(kConfigMap);
    const auto found = static_cast<size_t>(
        std::ranges::count_if(children, [](const Json* child) { return is_ours(*child); }));
    if (found != wanted) return fmt::format("{} children where {} are wanted", found, wanted);
    return std::nullopt;
  }

 private:
  static bool is_ours(const Json& child) {
    return at(child, "metadata", "ownerReferences") != nullptr;
  }

  static void label_child(Server& server, const Json& child, Json value) {
    server.ask("user", "PATCH", path_of(kConfigMap, child),
               JsonObject{{"metadata", JsonObject{{"labels", JsonObject{{kEchoLabel, value}}}}}});
  }

  static void hold_child(Server& server, const Json& child, Json finalizers) {
    const JsonObject metadata{{"finalizers", std::move(finalizers)}};
    server.ask("user", "PATCH", path_of(kConfigMap, child), JsonObject{{"metadata", metadata}});
  }

  // What no operator can do anything about.
  static void spoil(Server& server, Random& random, const std::string& path) {
    JsonObject spec{{"replicas", "many"}};
    if (random.chance(0.5)) spec = {{"value", kUnbearable}};
    server.ask("user", "PATCH", path, JsonObject{{"spec", std::move(spec)}});
  }

  static void disturb_child(Server& server, Random& random, const Json& child) {
    if (!is_ours(child)) return;
    switch (random.below(6)) {
      case 0:
      case 1:
        // Of a child without its label nobody here would hear that it is gone.
        if (!label(child, kEchoLabel).empty()) {
          server.ask("user", "DELETE", path_of(kConfigMap, child));
        }
        break;
      case 2:
        label_child(server, child, nullptr);
        break;
      case 3:
        label_child(server, child, "back");
        break;
      case 4:
        hold_child(server, child, JsonArray{kOfUser});
        label_child(server, child, nullptr);
        server.ask("user", "DELETE", path_of(kConfigMap, child));
        break;
      default:
        server.ask("user", "PATCH", path_of(kConfigMap, child),
                   JsonObject{{"data", JsonObject{{"value", "spoilt"}}}});
    }
  }

  // What has ever been asked of one Echo, by uid.
  struct Asked {
    int64_t most = 0;
    int64_t least = INT64_MAX;
    bool deleted = false;
  };

  void remember(const Json& echo) {
    Asked& asked = asked_[std::string(meta_text(echo, "uid"))];
    const int64_t replicas = int_or(at(echo, "spec", "replicas"));
    asked.most = std::max(asked.most, replicas);
    asked.least = std::min(asked.least, replicas);
    asked.deleted |= at(echo, "metadata", "deletionTimestamp") != nullptr;
  }

  const Asked* owner_of(const Json& child) const {
    const Json* owners = at(child, "metadata", "ownerReferences");
    if (owners == nullptr || owners->get_array().empty()) return nullptr;
    const auto found = asked_.find(std::string(string_or(find(owners->get_array()[0], "uid"))));
    return found == asked_.end() ? nullptr : &found->second;
  }

  std::optional<std::string> check_create(const Server&, const Json& child) const {
    const Asked* asked = owner_of(child);
    const auto name = meta_text(child, "name");
    if (asked == nullptr) return fmt::format("{} was created for nobody", name);
    if (index_of(name) >= asked->most) return fmt::format("{} was never asked for", name);
    return std::nullopt;
  }

  std::optional<std::string> check_delete(const Json& child) const {
    const Asked* asked = owner_of(child);
    const auto name = meta_text(child, "name");
    if (asked == nullptr) return fmt::format("{} was not ours to delete", name);
    if (!asked->deleted && index_of(name) < asked->least) {
      return fmt::format("{} was deleted though it was always wanted", name);
    }
    return std::nullopt;
  }

  // The finalizer may go only when no child is left.
  static std::optional<std::string> check_release(const Server& server, const Json& echo) {
    for (const Json* child : server.all(kConfigMap)) {
      const Json* owners = at(*child, "metadata", "ownerReferences");
      // One that is found again may be seen too late.
      if (owners != nullptr && label(*child, kEchoLabel) == meta_text(echo, "name") &&
          string_or(find(owners->get_array()[0], "uid")) == meta_text(echo, "uid")) {
        return fmt::format("{} was let go before its child {}", meta_text(echo, "name"),
                           meta_text(*child, "name"));
      }
    }
    return std::nullopt;
  }

  std::map<std::string, Asked> asked_;
};

}  // namespace

std::unique_ptr<Subject> make_echo_subject() {
  return std::make_unique<EchoSubject>();
}

}  // namespace grapnel::simulation
