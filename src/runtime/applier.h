// Carries out a Plan: its stages one after the other, the writes of a stage at the same time, then
// the status, then events and counts. It stops at the first stage in which a write failed.
//
// Of the writes of one stage one goes ahead, so that a refusal that holds for all of them (a quota)
// is met by one and not by five hundred. When it is granted the rest follows. Over all plans
// together at most `in_flight` are under way. A write that would change nothing is not sent.
//
// A server that has too much to do says when to come again (429). Who was told so comes again then,
// and from now on two less are under way: soon the server gets as many at once as it takes. After a
// hundred that were granted there is one more again.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/async.h"
#include "kube/client.h"
#include "runtime/cache.h"
#include "runtime/plan.h"
#include "runtime/writer.h"

namespace grapnel::runtime {

struct ApplierOptions {
  size_t in_flight = 384;
  size_t ahead = 1;
  Clock* clock = &system_clock();
  // Asked before each write: false once we are no longer the leader.
  std::function<bool()> may_write = {};
  std::function<void(const Event&)> on_event = {};
  std::function<void(const Count&)> on_count = {};
};

struct Outcome {
  struct Failed {
    ObjectRef target;
    std::string what;  // "create Pod default/a"
    Error error;
    bool defect = false;  // of the planner's, not the server's answer
  };
  std::vector<Failed> failed;
  std::vector<Trace> traces;
  size_t sent = 0;
  bool ok() const { return failed.empty(); }
};

class Applier {
 public:
  Applier(Executor executor, kube::Client& client, ApplierOptions options);

  // A cache in which to look whether an apply would change anything.
  void use(const CacheBase& cache) { caches_.push_back(&cache); }

  Task<Outcome> apply(Plan plan);
  // Only the status and the events: for a plan made to say why nothing else can be done.
  Task<Outcome> report(Plan plan);
  Task<Result<std::optional<Trace>>> look(Trace trace) {
    return runtime::look(client_, std::move(trace));
  }

 private:
  struct Applied {
    size_t hash = 0;
    kube::ResourceVersion version = 0;
  };
  Task<> carry_out_stage(std::span<Write> writes, Outcome& outcome);
  Task<> carry_out_all(std::span<Write> writes, Outcome& outcome);
  Task<> work(std::span<Write>& rest, Outcome& outcome);
  Task<> carry_out_one(const Write& write, Outcome& outcome);
  Task<WriteResult> send(const Write& write, Outcome& outcome);
  void slow_down();
  void speed_up();
  bool is_applied_already(const Write& write) const;
  void remember(const Write& write, const Trace& trace);

  kube::Client& client_;
  ApplierOptions options_;
  Semaphore permits_;
  size_t given_up_ = 0;  // of in_flight, for a server that takes fewer
  size_t granted_ = 0;   // since that changed
  std::vector<const CacheBase*> caches_;
  // What was applied last to each object, and the version it had then.
  absl::flat_hash_map<std::string, Applied> applied_;
};

}  // namespace grapnel::runtime
