#include "runtime/lease.h"

#include "base/log.h"
#include "base/probe.h"

namespace grapnel::runtime {
namespace {

Probe kTooLate("lease: not renewed in time");
Probe kTaken("lease: taken by another");
Probe kLateAnswer("lease: written, but the answer came too late");
Probe kLooksAgain("lease: a write failed, so it is read again");

constexpr double kJitter = 1.2;
constexpr Duration kReleaseTimeout = seconds(5);

class Stepper {
 public:
  Stepper(LeaseState& state, const LeaseMoment& moment) : s_(state), moment_(moment) {}

  LeaseAction operator()(const LeaseWake&) {
    if (is_too_late()) return lost();
    if (s_.leading && s_.current) return WriteLease{mine(*s_.record)};
    return ReadLease{};
  }

  LeaseAction operator()(const LeaseRead& read) {
    if (is_too_late()) return lost();
    if (!read.record) return s_.leading ? lost() : LeaseAction(WriteLease{mine({})});
    if (!s_.record || *s_.record != *read.record) {
      s_.record = read.record;
      s_.record_changed = moment_.now;
    }
    const bool others = !s_.record->holder.empty() && s_.record->holder != s_.options.identity;
    if (s_.leading && others) {
      kTaken.hit();
      return lost();
    }
    const Duration length = seconds(s_.record->duration_seconds);
    if (others && moment_.now < s_.record_changed + length) return wait();
    return WriteLease{mine(*s_.record)};
  }

  LeaseAction operator()(const LeaseReadFailed&) {
    if (is_too_late()) return lost();
    return wait();
  }

  LeaseAction operator()(const LeaseWritten& written) {
    s_.record = written.record;
    s_.record_changed = moment_.now;
    s_.current = true;
    s_.renewed = written.sent;
    // An answer that took this long proves nothing about now.
    if (moment_.now >= written.sent + s_.options.renew) {
      kLateAnswer.hit();
      if (s_.leading) return lost();
      s_.current = false;
      return wait();
    }
    s_.leading = true;
    return wait();
  }

  LeaseAction operator()(const LeaseWriteFailed&) {
    if (is_too_late()) return lost();
    // What we thought is there may not be; look once, then wait.
    if (std::exchange(s_.current, false)) {
      kLooksAgain.hit();
      return ReadLease{};
    }
    return wait();
  }

 private:
  bool is_too_late() const {
    if (!s_.leading || s_.leads_at(moment_.now)) return false;
    kTooLate.hit();
    return true;
  }

  LeaseAction lost() {
    s_.leading = s_.current = false;
    return LostLease{};
  }

  LeaseAction wait() const {
    const double factor = s_.leading ? 1.0 : 1.0 + (kJitter - 1.0) * moment_.random;
    return WaitForLease{
        Duration(static_cast<int64_t>(static_cast<double>(s_.options.retry.count()) * factor))};
  }

  LeaseRecord mine(LeaseRecord record) const {
    const std::string now = format_micro_time(moment_.wall);
    if (record.holder != s_.options.identity) {
      record.acquired = now;
      if (!record.version.empty()) ++record.transitions;
    }
    record.holder = s_.options.identity;
    record.duration_seconds = duration_cast<seconds>(s_.options.lease).count();
    record.renewed = now;
    return record;
  }

  LeaseState& s_;
  const LeaseMoment& moment_;
};

}  // namespace

Result<> validate(const LeaseOptions& options) {
  if (options.ns.empty() || options.name.empty() || options.identity.empty()) {
    return fail(Reason::kUsage, "a lease needs a namespace, a name and an identity");
  }
  if (options.lease <= options.renew) {
    return fail(Reason::kUsage, "the lease must last longer than its renewal may take");
  }
  if (options.renew <= options.retry * 6 / 5 || options.retry <= Duration::zero()) {
    return fail(Reason::kUsage, "there must be time for more than one try to renew the lease");
  }
  return {};
}

LeaseAction step(LeaseState& state, const LeaseInput& input, const LeaseMoment& moment) {
  return std::visit(Stepper(state, moment), input);
}

Json to_json(const LeaseRecord& record, const LeaseOptions& options) {
  JsonObject metadata{{"namespace", options.ns}, {"name", options.name}};
  if (!record.version.empty()) metadata["resourceVersion"] = record.version;
  JsonObject spec{{"holderIdentity", record.holder},
                  {"leaseDurationSeconds", record.duration_seconds},
                  {"leaseTransitions", record.transitions}};
  if (!record.acquired.empty()) spec["acquireTime"] = record.acquired;
  if (!record.renewed.empty()) spec["renewTime"] = record.renewed;
  return JsonObject{{"apiVersion", "coordination.k8s.io/v1"},
                    {"kind", "Lease"},
                    {"metadata", std::move(metadata)},
                    {"spec", std::move(spec)}};
}

LeaseRecord lease_record_of(const Json& object) {
  const auto text = [&](std::string_view name) {
    return std::string(string_or(at(object, "spec", name)));
  };
  return {.holder = text("holderIdentity"),
          .duration_seconds = int_or(at(object, "spec", "leaseDurationSeconds")),
          .acquired = text("acquireTime"),
          .renewed = text("renewTime"),
          .transitions = int_or(at(object, "spec", "leaseTransitions")),
          .version = std::string(string_or(at(object, "metadata", "resourceVersion")))};
}

Lease::Lease(kube::Client& client, Clock& clock, Random& random, LeaseOptions options)
    : client_(client), clock_(clock), random_(random), state_{.options = std::move(options)} {}

void Lease::tell(LogLevel level, std::string_view what, std::string_view more) const {
  log(level, what,
      {{"kind", "Lease"},
       {"namespace", state_.options.ns},
       {"name", state_.options.name},
       {"identity", identity()},
       {"why", more}});
}

Task<> Lease::run() {
  LeaseAction action = step(state_, LeaseWake{}, moment());
  while (!std::holds_alternative<LostLease>(action)) {
    const bool led = state_.leading;
    const LeaseInput input = co_await carry_out(action);
    action = step(state_, input, moment());
    if (!led && state_.leading) {
      tell(LogLevel::kInfo, "leading", "");
      if (on_change_) on_change_(true);
    }
  }
  tell(LogLevel::kError, "the lease is lost", "");
  if (on_change_) on_change_(false);
}

Task<LeaseInput> Lease::carry_out(LeaseAction action) {
  if (const auto* wait = std::get_if<WaitForLease>(&action)) {
    Instant until = clock_.instant() + wait->length;
    if (state_.leading) until = std::min(until, state_.renewed + state_.options.renew);
    co_await clock_.sleep_until(until);
    co_return LeaseWake{};
  }
  // A request that hangs must not keep us from seeing that our time is over.
  const Instant now = clock_.instant();
  const Instant deadline =
      state_.leads_at(now) ? state_.renewed + state_.options.renew : now + state_.options.renew;
  LeaseInput answer = LeaseReadFailed{};
  if (std::holds_alternative<WriteLease>(action)) answer = LeaseWriteFailed{};
  co_await with_deadline(clock_, deadline, send(std::move(action), answer));
  co_return answer;
}

Task<> Lease::send(LeaseAction action, LeaseInput& answer) {
  if (const auto* ask = std::get_if<WriteLease>(&action)) {
    answer = co_await write(ask->record);
  } else {
    answer = co_await read();
  }
}

Task<LeaseInput> Lease::read() {
  const auto object = co_await client_.get(kube::kinds::kLease,
                                           {.ns = state_.options.ns, .name = state_.options.name});
  if (object) co_return LeaseRead{lease_record_of(*object)};
  if (object.error().is(Reason::kNotFound)) co_return LeaseRead{};
  tell(LogLevel::kWarning, "cannot read the lease", object.error().message);
  co_return LeaseReadFailed{};
}

Task<LeaseInput> Lease::write(LeaseRecord record) {
  const Instant sent = clock_.instant();
  may_be_ours_ = true;
  const bool fresh = record.version.empty();
  Json object = to_json(record, state_.options);
  // As a patch with a version: what others have put on the object stays.
  const kube::Where where{.ns = state_.options.ns, .name = state_.options.name};
  const auto answer = fresh ? co_await client_.create(kube::kinds::kLease, std::move(object))
                            : co_await client_.patch(kube::kinds::kLease, where,
                                                     kube::PatchType::kMerge, std::move(object));
  if (answer) co_return LeaseWritten{lease_record_of(*answer), sent};
  tell(LogLevel::kInfo, "cannot write the lease", answer.error().message);
  co_return LeaseWriteFailed{};
}

Task<> Lease::release() {
  if (!may_be_ours_) co_return;
  const bool led = std::exchange(state_.leading, false);
  state_.current = false;
  co_await with_deadline(clock_, clock_.instant() + kReleaseTimeout, try_release());
  if (led && on_change_) on_change_(false);
}

Task<> Lease::try_release() {
  for (;;) {
    const LeaseInput found = co_await read();
    const auto* lease = std::get_if<LeaseRead>(&found);
    if (lease != nullptr && (!lease->record || lease->record->holder != identity())) co_return;
    if (lease != nullptr) {
      LeaseRecord record = *lease->record;
      record.holder.clear();
      record.duration_seconds = 1;
      record.renewed = format_micro_time(clock_.now());
      const LeaseInput done = co_await write(std::move(record));
      if (std::holds_alternative<LeaseWritten>(done)) co_return;
    }
    co_await clock_.sleep(milliseconds(200));
  }
}

}  // namespace grapnel::runtime
