// Whether the cluster is still there, for commands that wait on it for long.
//
// A laptop cluster is gone when its process is, unless it comes back within seconds. Another
// cluster's API server may restart: it is given minutes, and that we wait for it is said.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/async.h"
#include "base/error.h"
#include "kube/client.h"

namespace grapnel::cli {

// The cluster that a command speaks to.
struct Cluster {
  std::string laptop;       // the name of a laptop cluster; "": another cluster
  std::string description;  // "the laptop cluster 'default'"
};

// How things are at one moment.
struct ContactSample {
  Instant now{};
  std::optional<int> process;    // of a laptop cluster; nothing: there is none
  bool serves = false;           // that process, by its own word
  std::optional<Error> trouble;  // why what we follow does not get on
};

class Contact {
 public:
  // `process`: the laptop cluster's when the command began.
  Contact(Cluster cluster, std::optional<int> process)
      : cluster_(std::move(cluster)), process_(process) {}

  struct Verdict {
    std::string note = {};  // for the person who waits; "": none
    std::optional<Error> lost = {};
  };
  Verdict judge(const ContactSample& sample);

 private:
  bool is_away(const ContactSample& sample);
  Verdict judge_trouble(const ContactSample& sample);

  Cluster cluster_;
  std::optional<int> process_;
  std::optional<Instant> away_since_;
  std::optional<Instant> trouble_since_;
  bool said_so_ = false;
};

// The process of a laptop cluster, and whether it serves.
ContactSample look_at(const Cluster& cluster, Clock& clock);

// Until the cluster counts as lost; an Error in words for a person. `trouble` is asked now and
// then.
Task<Error> lost_contact(Cluster cluster, Clock& clock,
                         std::function<std::optional<Error>()> trouble,
                         std::function<void(std::string_view)> note);

// A request has got no answer, `why` says the client: the same in words for a person. Waits a
// little, for a laptop cluster that is just ending.
Task<Error> no_answer(Cluster cluster, Clock& clock, Error why);

// A connection into that pod has ended before its time: why, in words for a person.
Task<Error> why_cut(Cluster cluster, Clock& clock, kube::Client& client, kube::Where pod,
                    std::string process);

}  // namespace grapnel::cli
