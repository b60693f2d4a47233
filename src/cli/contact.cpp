#include "cli/contact.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/paths.h"

namespace grapnel::cli {
namespace {

constexpr Duration kLook = milliseconds(500);
// A laptop cluster that is restarted is back sooner.
constexpr Duration kUntilStopped = seconds(5);
// An API server that is restarted or moved may take this long.
constexpr Duration kPatience = minutes(10);
constexpr Duration kUntilSaid = seconds(10);

Error has_stopped(const Cluster& cluster) {
  return {.reason = Reason::kTransport,
          .message = fmt::format("the cluster '{}' has stopped", cluster.laptop)};
}

Error connection_lost(const Cluster& cluster, const Error& why) {
  return {
      .reason = Reason::kTransport,
      .message = fmt::format("lost the connection to {}: {}", cluster.description, why.message)};
}

}  // namespace

// A process that no longer serves is about to end; a new one that does not serve yet has begun.
bool Contact::is_away(const ContactSample& sample) {
  if (cluster_.laptop.empty()) return false;
  if (!sample.process) return true;
  if (!sample.serves) return sample.process == process_;
  process_ = sample.process;
  return false;
}

Contact::Verdict Contact::judge(const ContactSample& sample) {
  if (is_away(sample)) {
    if (!away_since_) away_since_ = sample.now;
    trouble_since_.reset();
    if (sample.now - *away_since_ >= kUntilStopped) return {.lost = has_stopped(cluster_)};
    return {};
  }
  away_since_.reset();
  return judge_trouble(sample);
}

Contact::Verdict Contact::judge_trouble(const ContactSample& sample) {
  if (!sample.trouble) {
    trouble_since_.reset();
    if (!std::exchange(said_so_, false)) return {};
    return {.note = fmt::format("{} answers again", cluster_.description)};
  }
  if (!trouble_since_) trouble_since_ = sample.now;
  const Duration length = sample.now - *trouble_since_;
  if (length >= kPatience) return {.lost = connection_lost(cluster_, *sample.trouble)};
  if (length < kUntilSaid || std::exchange(said_so_, true)) return {};
  return {.note = fmt::format("no contact with {} ({}); trying again for {} minutes",
                              cluster_.description, sample.trouble->message,
                              duration_cast<minutes>(kPatience).count())};
}

ContactSample look_at(const Cluster& cluster, Clock& clock) {
  ContactSample sample{.now = clock.instant()};
  if (cluster.laptop.empty()) return sample;
  const auto paths = paths_of_cluster(cluster.laptop);
  if (!paths) return sample;
  sample.process = running_pid(*paths);
  std::error_code ignored;
  sample.serves = sample.process && std::filesystem::exists(paths->kubeconfig(), ignored);
  return sample;
}

Task<Error> lost_contact(Cluster cluster, Clock& clock,
                         std::function<std::optional<Error>()> trouble,
                         std::function<void(std::string_view)> note) {
  Contact contact(cluster, look_at(cluster, clock).process);
  for (;;) {
    auto sample = look_at(cluster, clock);
    sample.trouble = trouble();
    const auto verdict = contact.judge(sample);
    if (verdict.lost) co_return *verdict.lost;
    if (!verdict.note.empty()) note(verdict.note);
    co_await clock.sleep(kLook);
  }
}

Task<Error> no_answer(Cluster cluster, Clock& clock, Error why) {
  const Instant deadline = clock.instant() + kUntilStopped;
  while (!cluster.laptop.empty() && clock.instant() < deadline) {
    if (!look_at(cluster, clock).serves) co_return has_stopped(cluster);
    co_await clock.sleep(milliseconds(50));
  }
  co_return connection_lost(cluster, why);
}

Task<Error> why_cut(Cluster cluster, Clock& clock, kube::Client& client, kube::Where pod,
                    std::string process) {
  // Its pods end before it does.
  if (!cluster.laptop.empty() && !look_at(cluster, clock).serves) co_return has_stopped(cluster);
  Result<Json> found = fail(Reason::kTimeout, "no answer");
  co_await with_deadline(clock, clock.instant() + kUntilStopped,
                         [](kube::Client& c, kube::Where w, Result<Json>& out) -> Task<> {
                           out = co_await c.get(kube::kinds::kPod, std::move(w));
                         }(client, std::move(pod), found));
  if (!found && found.error().is_transient()) {
    co_return co_await no_answer(std::move(cluster), clock, found.error());
  }
  const auto phase = found ? string_or(at(*found, "status", "phase")) : "";
  if (phase == "Running" && at(*found, "metadata", "deletionTimestamp") == nullptr) {
    co_return Error{.reason = Reason::kTransport,
                    .message = fmt::format("the connection to {} was cut", process)};
  }
  co_return Error{.reason = Reason::kNotFound, .message = fmt::format("{} has ended", process)};
}

}  // namespace grapnel::cli
