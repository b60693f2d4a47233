// What lies outside the Kubernetes API, as planners see it: a Ray dashboard, a process in a pod.
// Planners stay pure: they say in a Plan what they want to know and what is to be done, and find in
// an External what came of it. Executors registered with the runtime do the asking and the doing
// (external_runner.h).
//
// Facts: while the last plan of an object asks a Question, the runtime asks it again and again. It
// never holds up a plan: a plan is made with the last answer, whatever its age. A changed answer, a
// first failure and the end of failures wake the key.
//
// Calls: as long as the last plan names a Call, the runtime sees to it that it is done once. It is
// started after the plan's writes and its status are through, and tried again with growing pauses
// when it fails. Its end wakes the key. What no plan names any more is forgotten, unless it is
// under way. After a restart nothing of it is known: the same id must be harmless on the other
// side, or the planner must find out by a question first.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "document/json.h"

namespace grapnel::runtime {

struct Question {
  std::string name;      // among those of one object: "job status"
  std::string executor;  // whom to ask: "ray"
  Json what;             // in the executor's words
  Duration every = seconds(3);
};

struct Fact {
  std::optional<Json> answer;    // the last one that came; kept while asking fails
  Time answered{};               // when it came
  std::optional<Error> trouble;  // why the last try brought no answer
  Time failing_since{};          // the first failure since the last answer
};

struct Call {
  std::string id;  // the same act has the same id
  std::string executor;
  Json what;
};

struct CallState {
  enum class Phase { kUnderWay, kDone, kFailed };
  Phase phase = Phase::kUnderWay;
  Json answer = nullptr;
  // Of the last try; `ambiguous` where the act may have been done all the same.
  std::optional<Error> error = std::nullopt;
  Time ended{};
  int tries = 0;
};

// What is known for one object.
struct External {
  std::map<std::string, Fact, std::less<>> facts;       // by the question's name
  std::map<std::string, CallState, std::less<>> calls;  // by id

  // nullptr: not asked yet, or asked otherwise before.
  const Fact* fact(std::string_view name) const;
  const CallState* call(std::string_view id) const;
  bool is_done(std::string_view id) const;
};

}  // namespace grapnel::runtime
