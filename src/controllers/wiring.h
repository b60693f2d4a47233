// Where planners meet caches. A Wiring adds controllers to a Manager, with the informers that fill
// what their planners observe. Two controllers that read the same objects in the same form share
// one informer.
//
//   void add(Wiring& wiring) {
//     auto& greetings = wiring.informer<Greeting>(kGreeting, leniently<Greeting>);
//     auto& cards = wiring.informer<api::Pod>(kinds::kPod, decode_card, {.labels =
//     kGreetingLabel}); auto greeting = wiring.controller<Observed>({.name = "greeting"},
//     greetings); greeting.owns(cards, &Observed::cards); greeting.plans(greeting::plan);
//   }
//
// A planner's Observed is an aggregate whose first member is `const T&`, the object itself, and
// that has a member `const runtime::Refusal* refused`; one whose plans ask questions or make calls
// has a member `const runtime::External* external` too.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <typeindex>
#include <utility>
#include <vector>

#include "api/codec.h"
#include "runtime/manager.h"

namespace grapnel::controllers {

struct WiringOptions {
  std::string ns = {};  // "": all namespaces
  // What the original controllers do wherever ours differ on purpose.
  bool strict = false;
  // On the laptop: where experiments have their folders. "": they have none.
  std::string folders = {};
};

// A decoder of one of our kinds as a cache uses it: fields that are not known are passed over.
template <class T, Result<T> (*decode)(JsonView, api::Unknown) = api::decode_resource<T>>
Result<T> leniently(JsonView object) {
  return decode(object, api::Unknown::kIgnore);
}

// Which objects of a kind are watched.
struct Selection {
  std::string labels = {};
  std::string fields = {};
  bool all_namespaces = false;
};

// Keeps cached objects alive while a plan is made of them.
class Held {
 public:
  template <class T>
  const T* keep(std::shared_ptr<const T> object) {
    const T* pointer = object.get();
    if (object) objects_.push_back(std::move(object));
    return pointer;
  }

 private:
  std::vector<std::shared_ptr<const void>> objects_;
};

// The value of an index of objects by what a label of theirs names in their own namespace.
inline std::string in_namespace(const kube::Meta& meta, std::string_view name) {
  return fmt::format("{}/{}", meta.ns(), name);
}

// What names the object in this label; a controller says labelled() of it first.
template <class Child>
std::vector<std::shared_ptr<const Child>> find_labelled(const runtime::Informer<Child>& children,
                                                        std::string_view label,
                                                        const kube::Meta& owner) {
  return children.cache().indexed(label, in_namespace(owner, owner.name()));
}

template <class Observed, class T>
class WiredController {
 public:
  using Gather = std::function<void(Observed&, const T&, Held&)>;
  template <class Child>
  using Children = std::vector<const Child*> Observed::*;
  template <class Child>
  using Wanted = bool (*)(const Child&);

  WiredController(runtime::Manager& manager, runtime::ControllerOptions options,
                  runtime::Informer<T>& own)
      : manager_(manager), state_(std::make_shared<State>(own)) {
    options.kind = &own.kind();
    options.plan = [state = state_](const kube::Key& key, Time now,
                                    const runtime::Refusal* refused) {
      return state->plan(key, now, refused);
    };
    controller_ = &manager.add_controller(std::move(options));
    state_->controller = controller_;
    manager.watch(own, *controller_);
  }

  // Objects that ours control, by the uid in their owner reference.
  template <class Child>
  void owns(runtime::Informer<Child>& children, Children<Child> where) {
    manager_.watch_owned(children, *controller_);
    gathers([&children, where](Observed& observed, const T& object, Held& held) {
      for (auto& child : children.cache().controlled_by(object.meta.uid)) {
        (observed.*where).push_back(held.keep(std::move(child)));
      }
    });
  }
  template <class Child>
  void owns(runtime::Informer<Child>& children) {
    manager_.watch_owned(children, *controller_);
  }

  // Objects that name ours in this label. A change of one that is not `wanted` wakes nobody.
  template <class Child>
  void labelled(runtime::Informer<Child>& children, std::string_view label,
                Wanted<Child> wanted = nullptr) {
    add_label_index(children, label);
    if (wanted == nullptr) {
      return manager_.watch_mapped<Child>(children, *controller_, [label](const Child& child) {
        return std::vector{kube::Key{child.meta.key.ns, std::string(child.meta.labels.get(label))}};
      });
    }
    controller_->use(children.cache());
    children.cache().add_handler(
        [controller = controller_, label, wanted](const Child* before, const Child* after) {
          if (after != nullptr && !wanted(*after)) return;
          const kube::Meta& meta = (after != nullptr ? after : before)->meta;
          controller->enqueue({meta.key.ns, std::string(meta.labels.get(label))});
        });
  }
  // Objects that are read, and whose changes wake nobody.
  template <class Other>
  void reads(runtime::Informer<Other>& others) {
    controller_->use(others.cache());
  }
  template <class Other>
  void woken_by(runtime::Informer<Other>& others,
                std::function<std::vector<kube::Key>(const Other&)> keys) {
    manager_.watch_mapped<Other>(others, *controller_, std::move(keys));
  }
  void gathers(Gather gather) { state_->gathers.push_back(std::move(gather)); }
  void plans(runtime::Plan (*plan)(const Observed&, Time)) { state_->planner = plan; }

 private:
  struct State {
    explicit State(runtime::Informer<T>& informer) : own(informer) {}

    std::optional<runtime::Plan> plan(const kube::Key& key, Time now,
                                      const runtime::Refusal* refused) const {
      const auto object = own.cache().get(key);
      if (!object) return std::nullopt;
      Held held;
      Observed observed{*object};
      observed.refused = refused;
      if constexpr (requires { observed.external; }) observed.external = &controller->external(key);
      for (const Gather& gather : gathers) gather(observed, *object, held);
      return planner(observed, now);
    }

    runtime::Informer<T>& own;
    runtime::Controller* controller = nullptr;
    std::vector<Gather> gathers;
    runtime::Plan (*planner)(const Observed&, Time) = nullptr;
  };

  template <class Child>
  static void add_label_index(runtime::Informer<Child>& children, std::string_view label) {
    if (children.cache().has_index(label)) return;
    children.cache().add_index(std::string(label), [label](const Child& child) {
      return std::vector{in_namespace(child.meta, child.meta.labels.get(label))};
    });
  }

  runtime::Manager& manager_;
  runtime::Controller* controller_ = nullptr;
  std::shared_ptr<State> state_;
};

class Wiring {
 public:
  Wiring(runtime::Manager& manager, WiringOptions options)
      : manager_(manager), options_(std::move(options)) {}

  const WiringOptions& options() const { return options_; }
  runtime::Manager& manager() { return manager_; }

  template <class T>
  runtime::Informer<T>& informer(const kube::Kind& kind, Result<T> (*decode)(JsonView),
                                 Selection which = {}) {
    auto& known = informers_[{std::type_index(typeid(T)), reinterpret_cast<uintptr_t>(decode),
                              kind.api_path(), which.labels, which.fields}];
    if (known == nullptr) {
      kube::ListOptions filter{.label_selector = std::move(which.labels),
                               .field_selector = std::move(which.fields)};
      if (kind.namespaced && !which.all_namespaces) filter.ns = options_.ns;
      known = &manager_.add_informer<T>({.kind = kind, .filter = std::move(filter)}, decode);
    }
    return static_cast<runtime::Informer<T>&>(*known);
  }

  template <class Observed, class T>
  WiredController<Observed, T> controller(runtime::ControllerOptions options,
                                          runtime::Informer<T>& own) {
    return {manager_, std::move(options), own};
  }

 private:
  using Shared = std::tuple<std::type_index, uintptr_t, std::string, std::string, std::string>;

  runtime::Manager& manager_;
  WiringOptions options_;
  std::map<Shared, runtime::InformerBase*> informers_;
};

}  // namespace grapnel::controllers
