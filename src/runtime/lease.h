// Leader election on a coordination.k8s.io Lease: of several operators one works, the others wait
// with warm caches.
//
// Who leads writes its name into the Lease every `retry`. Another may take over when it has seen no
// change for the Lease's duration *on its own clock*: the times in the object are for people,
// clocks differ. A leader that could not renew for `renew` stops by itself, so it has stopped
// before the next one can start. That is measured from when the renewal was sent, and asked again
// before each write (leading()), so that a process that was frozen does not go on where it left
// off.
//
// The decisions are in step(), which is pure; class Lease carries them out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "base/async.h"
#include "base/log.h"
#include "base/random.h"
#include "document/json.h"
#include "kube/client.h"

namespace grapnel::runtime {

struct LeaseOptions {
  std::string ns;
  std::string name;
  std::string identity;  // unlike any other process's, also a restarted one's
  Duration lease = seconds(15);
  Duration renew = seconds(10);
  Duration retry = seconds(2);
};
// lease > renew > 1.2 * retry, and all names set.
Result<> validate(const LeaseOptions& options);

struct LeaseRecord {
  std::string holder;  // "": nobody
  int64_t duration_seconds = 0;
  std::string acquired;  // as texts: for people
  std::string renewed;
  int64_t transitions = 0;
  std::string version;  // of the object; "": there is none yet
  bool operator==(const LeaseRecord&) const = default;
};

// ---- the decisions ------------------------------------------------------------------------------

struct LeaseState {
  LeaseOptions options;
  bool leading = false;
  Instant renewed{};  // when the last renewal that succeeded was sent
  std::optional<LeaseRecord> record;
  Instant record_changed{};
  bool current = false;  // `record` is what we wrote: renew without reading it first

  // Whether we may write at this moment.
  bool leads_at(Instant now) const { return leading && now < renewed + options.renew; }
};

struct LeaseWake {};
struct LeaseRead {
  std::optional<LeaseRecord> record;  // nothing: there is no such object
};
struct LeaseReadFailed {};
struct LeaseWritten {
  LeaseRecord record;
  Instant sent;
};
struct LeaseWriteFailed {};
using LeaseInput =
    std::variant<LeaseWake, LeaseRead, LeaseReadFailed, LeaseWritten, LeaseWriteFailed>;

struct ReadLease {};
struct WriteLease {
  LeaseRecord record;  // with the version it replaces; "" to create it
};
struct WaitForLease {
  Duration length{};
};
struct LostLease {};
using LeaseAction = std::variant<ReadLease, WriteLease, WaitForLease, LostLease>;

struct LeaseMoment {
  Instant now{};
  Time wall{};
  double random = 0;  // in [0, 1)
};
LeaseAction step(LeaseState& state, const LeaseInput& input, const LeaseMoment& moment);

Json to_json(const LeaseRecord& record, const LeaseOptions& options);
LeaseRecord lease_record_of(const Json& object);

// ---- carried out --------------------------------------------------------------------------------

class Lease {
 public:
  Lease(kube::Client& client, Clock& clock, Random& random, LeaseOptions options);

  // Tries to get the lease and keeps it; returns when it was lost.
  Task<> run();
  bool leading() const { return state_.leads_at(clock_.instant()); }
  const std::string& identity() const { return state_.options.identity; }
  const std::string& name() const { return state_.options.name; }
  // Of our last write to it; 0 when it is no number.
  kube::ResourceVersion version() const {
    return state_.record ? kube::parse_resource_version(state_.record->version) : 0;
  }
  void on_change(std::function<void(bool leading)> f) { on_change_ = std::move(f); }
  // Lets the next one start at once. Only when nothing of ours can write any more.
  Task<> release();

 private:
  LeaseMoment moment() {
    return {.now = clock_.instant(), .wall = clock_.now(), .random = random_.uniform()};
  }
  Task<LeaseInput> carry_out(LeaseAction action);
  Task<> send(LeaseAction action, LeaseInput& answer);
  Task<LeaseInput> read();
  Task<LeaseInput> write(LeaseRecord record);
  Task<> try_release();
  void tell(LogLevel level, std::string_view what, std::string_view why) const;

  kube::Client& client_;
  Clock& clock_;
  Random& random_;
  LeaseState state_;
  bool may_be_ours_ = false;  // a write was sent, whatever became of it
  std::function<void(bool)> on_change_;
};

}  // namespace grapnel::runtime
