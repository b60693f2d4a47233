// What a planner answers: the actions that bring the world closer to what is asked. A Plan is a
// value: it can be compared, printed (`grapnel plan`), simulated, or handed to the applier.
//
// The applier carries out the stages one after the other, the writes of one stage at the same time;
// then the status; then events and counts. It stops at the first stage in which a write failed, so
// nothing later happens on a false premise.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "document/json.h"
#include "kube/kind.h"
#include "kube/meta.h"
#include "runtime/external.h"

namespace grapnel::runtime {

// An object that exists. The uid says which one: a later object of the same name is another.
struct ObjectRef {
  const kube::Kind* kind = nullptr;
  kube::Key key;
  kube::Uid uid;
};
bool operator==(const ObjectRef& a, const ObjectRef& b);

// An object that is to be: whole, or as a function that makes it when it is sent. A plan for a
// thousand objects of one template does not hold them all.
class NewObject {
 public:
  NewObject() = default;
  NewObject(Json whole);
  NewObject(JsonObject whole) : NewObject(Json(std::move(whole))) {}
  NewObject(kube::Key key, std::function<Json()> make);

  const kube::Key& key() const { return key_; }
  Json make() const { return make_ ? make_() : whole_; }

 private:
  kube::Key key_;
  Json whole_;
  std::function<Json()> make_;
};

// Creates the object; its name is a function of its identity. That it exists already is success
// when its controller is the one named in its ownerReferences, and an error otherwise.
struct Create {
  const kube::Kind* kind = nullptr;
  NewObject object;
  // Of the object that bears the new one's name: "eviction", "binding", "token".
  std::string subresource = {};
};

struct Patch {
  enum class Type { kMerge, kJson, kStrategic };
  ObjectRef target;
  Type type = Type::kMerge;
  Json body;
  std::string subresource;  // "status", "scale", "" for the object itself
  // Set: only if the object is still at this version.
  kube::ResourceVersion if_version = 0;
};

// Server-side apply of the fields we own, with force. To an existing object it carries the uid: a
// stale apply would bring a deleted object back.
struct Apply {
  const kube::Kind* kind = nullptr;
  Json object;
  kube::Uid uid;  // empty: create it when it is missing
};

struct Delete {
  enum class Propagation { kBackground, kForeground, kOrphan };
  ObjectRef target;
  Propagation propagation = Propagation::kBackground;
  std::optional<int64_t> grace_seconds;
};

using Write = std::variant<Create, Patch, Apply, Delete>;

struct Event {
  enum class Type { kNormal, kWarning };
  ObjectRef regarding;
  Type type = Type::kNormal;
  std::string reason;  // CamelCase, as in `kubectl get events`
  std::string action;  // what was being done: "Reconciling"
  std::string message;
};

// Of a metric's series.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Adds one to a counter, once the status of this Plan is written.
struct Count {
  std::string metric;  // jobset_completed_total
  MetricLabels labels;
};

struct Plan {
  std::vector<std::vector<Write>> stages;
  std::optional<Patch> status;
  // The least time since the last status for this one to be written, unless a write or an event
  // comes with it: of an object whose children are counted, and change many times a second.
  Duration between_counts{};
  // Made once the status is written; as long as each plan names them.
  std::vector<Call> calls;
  std::vector<Event> events;
  std::vector<Count> counts;
  std::vector<Question> questions;     // whose answers later plans find in their External
  std::optional<Duration> look_again;  // even if nothing changes until then

  void add(Write write);               // to the current stage
  void then();                         // what is added from now on waits for all before it
  void add(Plan other);                // its stages merge with ours, one by one
  void look_again_in(Duration delay);  // the earliest wins
  void ask(Question question);
  void call(Call call);
  void emit(ObjectRef regarding, Event::Type type, std::string reason, std::string message,
            std::string action = "Reconciling");
  // Patches /status of the target from `before` to `after`; nothing when they are equal.
  void set_status(ObjectRef target, const Json& before, const Json& after);

  bool empty() const;
};

// Why a Plan could not be carried out, when no repetition helps until somebody changes something:
// Invalid, Forbidden, a quota. A planner that is given one answers with the status and the events
// that say so; the rest of that answer is not carried out.
struct Refusal {
  std::string what;  // "create Job default/train-worker-0"
  Error error;
};

// The object a write is about; the uid where the write names one.
ObjectRef target_of(const Write& write);

// In words, a line for each action: "create Job default/train-worker-0".
std::string describe(const Plan& plan);
std::string describe(const Write& write);

}  // namespace grapnel::runtime
