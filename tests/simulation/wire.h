// The network between one operator and the server: requests that come late, get lost on the way
// there or on the way back, and watch streams that lag, break, or fall silent.
//
// A request that has left its operator arrives whether or not the operator still lives: it is the
// world that carries it, not the coroutine that waits for the answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "http/client.h"
#include "tests/simulation/server.h"
#include "tests/simulation/virtual_clock.h"

namespace grapnel::simulation {

// How bad the network and the server are. All zero: perfect.
struct Faults {
  double never_leaves = 0;   // a request: refused before it is sent
  double lost_there = 0;     // lost before the server has it; the client cannot know
  double lost_back = 0;      // lost after the server has done it; nor can it here
  double server_error = 0;   // 500, before or after taking effect
  double too_many = 0;       // 429 with Retry-After
  double denied = 0;         // a create: 403, by somebody's policy
  double webhook_down = 0;   // a webhook is needed and does not answer: 500
  double hangs = 0;          // no answer until the client gives up
  double slow = 0;           // takes seconds
  double stream_cut = 0;     // a watch: per delivery
  double stream_frozen = 0;  // per delivery: silent from then on
  double page_expired = 0;   // a page's token: 410; far less often a list without one
  double behind = 0;         // the server that is asked is behind the version asked for
  double slow_planner = 0;   // a plan takes some milliseconds
  double expired_as_http = 0.5;
};

class Stream;

class Wire final : public http::Transport {
 public:
  Wire(Server& server, VirtualClock& clock, Random& random, const Faults& faults, Executor executor,
       std::string who);
  ~Wire() override;

  Task<Result<http::Response>> send(const http::Request& request) override;
  Task<Result<http::StreamResponse>> open(const http::Request& request) override;

  // ---- troubles that last ----
  void cut_off(Duration length) { cut_off_until_ = clock_.instant() + length; }
  void refuse_watches(Duration length) { no_watches_until_ = clock_.instant() + length; }
  void refuse_events(Duration length) { no_events_until_ = clock_.instant() + length; }
  // Watches open, but bring nothing.
  void silence_watches(Duration length);
  // How many watches are open and have brought all that has happened.
  size_t watches() const;

 private:
  struct Answer;
  void deliver(const http::Request& request, std::shared_ptr<Answer> answer);
  Duration delay();
  Task<Result<http::StreamResponse>> open_watch(http::Request request);

  Server& server_;
  VirtualClock& clock_;
  Random& random_;
  const Faults& faults_;
  Executor executor_;
  std::string who_;
  std::optional<http::Response> refusal_of(const http::Request& request);

  std::vector<std::shared_ptr<Stream>> streams_;
  Instant cut_off_until_{};
  Instant no_watches_until_{};
  Instant no_events_until_{};
  Instant silent_until_{};
};

}  // namespace grapnel::simulation
