// How one kind is followed: list, then watch from there, again and again, whatever the server and
// the network do. This is the part that decides; it does no I/O, reads no clock and rolls no dice,
// so that each of its rules is a row in a table test. informer.h carries out what it says.
//
// What must hold:
//  - the cache is never emptied because something failed: objects go only when a whole list, or
//    the server, says that they are gone;
//  - the version we resume from never passes an event that was not applied;
//  - no failure makes a hot loop;
//  - a kind that the server does not know is asked for again, up to a minute later each time, and
//  is
//    not synced until all of it has been listed anew: what was known of it is left as it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "base/time.h"

namespace grapnel::runtime {

struct WatcherOptions {
  // Ask for the initial state as a stream first; a server that cannot is asked for a list.
  bool watch_list = true;
  // First list from what the server has at hand ("0"). It may be older than what a previous process
  // saw, so only for kinds on which no decision rests.
  bool stale_first_list = false;
  int64_t page = 500;  // 0: in one piece
  bool operator==(const WatcherOptions&) const = default;
};

// ---- what happened ------------------------------------------------------------------------------

struct ListPageDone {
  std::string version;
  std::string continue_token;
};
struct ListFailed {
  Error error;
};
struct WatchOpened {};
struct WatchRefused {  // no stream came
  Error error;
};
struct ObjectEvent {
  enum class Type { kAdded, kModified, kDeleted };
  Type type = Type::kAdded;
  std::string version;  // "" when it cannot be read
};
struct Bookmark {
  std::string version;
  bool initial_events_end = false;
};
struct ErrorEvent {  // {"type": "ERROR"} on a stream that was opened well
  Error error;
};
struct StreamEnded {};
struct StreamFailed {
  Error error;
};
struct Silence {};  // nothing came for the time OpenWatch gave
struct Doubted {    // somebody knows of a change that does not come on the stream that is open
  bool contents = false;  // and opening it again has not helped
};
struct TimerDone {};  // the back-off is over

using WatcherInput =
    std::variant<ListPageDone, ListFailed, WatchOpened, WatchRefused, ObjectEvent, Bookmark,
                 ErrorEvent, StreamEnded, StreamFailed, Silence, Doubted, TimerDone>;

// Time and chance at the moment of an input. `random` is in [0, 1).
struct Moment {
  Instant now{};
  double random = 0;
};

// ---- what to do ---------------------------------------------------------------------------------

struct GoOn {};  // with the stream or list that is open
struct StartList {
  std::string version;
  int64_t limit = 0;
  std::string continue_token;
  bool operator==(const StartList&) const = default;
};
struct OpenWatch {
  std::string version;
  bool initial_events = false;
  Duration timeout{};  // asked of the server
  Duration silence{};  // after this long without a byte the connection counts as dead
  bool operator==(const OpenWatch&) const = default;
};
struct BackOff {
  Duration length{};
  bool operator==(const BackOff&) const = default;
};

// The flags first, in this order; then `next`, for which an open stream is closed.
struct WatcherStep {
  bool begin_replace = false;  // objects not seen from here to finish_replace are gone
  bool apply = false;          // hand the event's object to the cache
  bool finish_replace = false;
  bool synced = false;   // for the first time, or the first since the kind was missing
  bool advance = false;  // the cache has seen all up to WatcherState::version
  std::variant<GoOn, StartList, OpenWatch, BackOff> next;
};

struct WatcherState {
  explicit WatcherState(WatcherOptions options_in)
      : options(options_in), use_watch_list(options_in.watch_list) {}

  WatcherOptions options;
  std::string version;  // the last one seen; "": none
  bool synced = false;
  bool missing = false;  // the server has no such kind: its definition is not there, or no longer
  bool use_watch_list = true;
  bool listing = true;           // what TimerDone goes back to: a list, or else a watch
  bool version_lost = false;     // the server cannot serve `version`: ask for its newest
  bool pages_lost = false;       // a page's token expired: ask for all in one piece
  bool replacing = false;        // between begin_replace and finish_replace
  bool synthetic = false;        // this watch began with events that are not in version order
  std::optional<Error> trouble;  // the last failure, until something works: for readiness

  // The stream that is open.
  Instant opened{};
  bool heard = false;

  int failures = 0;  // in a row, for the back-off
  Instant last_failure{};
  std::optional<Instant> watch_failing_since;
};

// The first thing to do.
WatcherStep start(WatcherState& state, Moment moment);
WatcherStep step(WatcherState& state, const WatcherInput& input, Moment moment);

}  // namespace grapnel::runtime
