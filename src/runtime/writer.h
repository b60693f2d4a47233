// Carries out one write of a Plan so that it is safe to repeat: it means one object by its uid, it
// finds out what became of a request whose answer was lost, and it says what a cache must have seen
// before anyone plans on it again.
#pragma once

#include <optional>

#include "base/async.h"
#include "kube/client.h"
#include "runtime/plan.h"

namespace grapnel::runtime {

// The trace that a write leaves. A cache has seen it when it has come to `version`, or, for a
// deletion, when the object with the uid `deleted` is gone or going. While nobody could tell what
// became of the write, the trace is `unclear`.
struct Trace {
  const kube::Kind* kind = nullptr;
  kube::Key key;
  kube::ResourceVersion version = 0;
  kube::Uid deleted;
  bool unclear = false;
};

struct WriteResult {
  std::optional<Error> error;
  std::optional<Trace> trace;  // also of a failure, where we learned what stands there now
  bool defect = false;         // the planner's own code failed; nothing was sent
};

// True when sending it could not change anything.
bool changes_nothing(const Write& write);

// Errors, beside those of the server: kUsage when the write does not say what it means (a create
// without a name, a delete without a uid); kConflict when the target is not what it was when the
// plan was made.
Task<WriteResult> carry_out(kube::Client& client, const Write& write);

// What stands there now, after a write whose trace was unclear; nothing when there is nothing.
Task<Result<std::optional<Trace>>> look(kube::Client& client, Trace trace);

// No repetition helps until somebody changes something: Invalid, Forbidden (quota, too), a name
// that is taken by a stranger.
bool is_refusal(const Error& error);

}  // namespace grapnel::runtime
