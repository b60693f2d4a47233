#include "runtime/watcher.h"

#include <algorithm>

#include "base/probe.h"

namespace grapnel::runtime {
namespace {

Probe kTokenExpired("watch: a page's token or a list's version has expired");
Probe kExpiredTwice("watch: a list has expired again");
Probe kVersionExpired("watch: the version has expired");
Probe kTooLarge("watch: the server is behind our version");
Probe kNoWatchList("watch: the server sends no initial events");
Probe kBroke("watch: a stream that served well broke");
Probe kSilent("watch: silence");
Probe kOutOfPatience("watch: it fails for so long that we list");
Probe kReopensInDoubt("watch: opened again in doubt");
Probe kRelistsInDoubt("watch: all is read again in doubt");

// client-go's figures, which API servers are sized for.
constexpr Duration kFirstBackOff = milliseconds(800);
constexpr Duration kLongestBackOff = seconds(30);
constexpr Duration kFirstWaitForDefinition = seconds(5);
constexpr Duration kLongestWaitForDefinition = minutes(1);
constexpr Duration kQuietUntilForgiven = minutes(2);
constexpr Duration kShortestGoodWatch = seconds(1);
constexpr Duration kShortestTimeout = minutes(5);
// A frozen server keeps its end of the connection open. Bookmarks come about once a minute, and
// opening a watch again from where we are costs one request.
constexpr Duration kLongestSilence = seconds(90);
// A server that does not know sendInitialEvents may ignore it and never say where they end.
constexpr Duration kInitialEventsSilence = seconds(30);
// How long a failing watch is tried again before we doubt the version it starts from.
constexpr Duration kWatchPatience = minutes(1);

bool is_expired(const Error& error) {
  return error.code == 410 || error.is(Reason::kExpired) || error.is(Reason::kGone);
}

// The server is behind the version we ask for. Asking again for that version can fail for ever, as
// after a restore of its database.
bool is_too_large_version(const Error& error) {
  for (const auto& cause : error.causes) {
    if (cause.reason == "ResourceVersionTooLarge") return true;
  }
  return error.message.find("Too large resource version") != std::string::npos;
}

// Of a collection, that is: of one without objects the answer is an empty list.
bool is_missing_kind(const Error& error) {
  return error.code == 404;
}

bool is_client_error(const Error& error) {
  return error.code >= 400 && error.code < 500 && error.code != 429 && error.code != 401 &&
         error.code != 403 && !is_expired(error);
}

Duration scaled(Duration length, double by) {
  return Duration(static_cast<int64_t>(static_cast<double>(length.count()) * by));
}

class Stepper {
 public:
  Stepper(WatcherState& state, Moment moment) : s_(state), moment_(moment) {}

  WatcherStep begin() {
    WatcherStep out;
    if (s_.use_watch_list) {
      s_.listing = true;
      s_.synthetic = true;
      out.begin_replace = s_.replacing = true;
      out.next = watch("", true);
      return out;
    }
    return list();
  }

  WatcherStep operator()(const ListPageDone& page) {
    recovered();
    WatcherStep out;
    if (!page.continue_token.empty()) {
      out.next = StartList{.limit = s_.options.page, .continue_token = page.continue_token};
      return out;
    }
    finish_replace(out, page.version);
    out.next = watch(s_.version, false);
    return out;
  }

  WatcherStep operator()(const ListFailed& failed) {
    if (is_missing_kind(failed.error)) return wait_for_definition(failed.error);
    if (is_expired(failed.error)) {
      // Of a page: its token is too old. Of a list: its version is.
      const bool first_time = !s_.version_lost || !s_.pages_lost;
      (first_time ? kTokenExpired : kExpiredTwice).hit();
      s_.version_lost = s_.pages_lost = true;
      s_.trouble = failed.error;
      return first_time ? list() : back_off(failed.error);
    }
    if (is_too_large_version(failed.error)) {
      kTooLarge.hit();
      s_.version_lost = true;
    }
    return back_off(failed.error);
  }

  WatcherStep operator()(const WatchOpened&) {
    s_.opened = moment_.now;
    s_.heard = false;
    return {};
  }

  WatcherStep operator()(const WatchRefused& refused) {
    if (is_missing_kind(refused.error)) return wait_for_definition(refused.error);
    if (s_.replacing && is_client_error(refused.error)) return without_watch_list();
    return watch_failed(refused.error);
  }

  WatcherStep operator()(const ObjectEvent& event) {
    heard();
    WatcherStep out;
    out.apply = true;
    // Initial events come in the order of names: their versions say nothing about what is to come.
    if (s_.synthetic && event.type == ObjectEvent::Type::kAdded) return out;
    if (s_.replacing) return out;  // not before the bookmark that ends them
    s_.synthetic = false;
    advance(out, event.version);
    return out;
  }

  WatcherStep operator()(const Bookmark& bookmark) {
    heard();
    WatcherStep out;
    if (s_.replacing) {
      if (!bookmark.initial_events_end) return out;
      finish_replace(out, bookmark.version);
      s_.synthetic = false;
      return out;
    }
    s_.synthetic = false;
    advance(out, bookmark.version);
    return out;
  }

  WatcherStep operator()(const ErrorEvent& event) { return watch_failed(event.error); }

  WatcherStep operator()(const StreamFailed& failed) {
    // A connection that served well and broke is opened again at once, but only once in a while.
    const bool served = s_.heard || moment_.now - s_.opened >= kShortestGoodWatch;
    if (served && !s_.replacing && !failed_lately()) {
      kBroke.hit();
      note_failure();
      return reopen();
    }
    return watch_failed(failed.error);
  }

  WatcherStep operator()(const StreamEnded&) {
    const bool too_short = !s_.heard && moment_.now - s_.opened < kShortestGoodWatch;
    if (too_short || s_.replacing) {
      return watch_failed(Error{.reason = Reason::kTransport, .message = "the watch ended early"});
    }
    return reopen();
  }

  WatcherStep operator()(const Silence&) {
    kSilent.hit();
    if (s_.replacing) return without_watch_list();
    return reopen();
  }

  WatcherStep operator()(const Doubted& doubted) {
    if (!doubted.contents && !s_.replacing) {
      kReopensInDoubt.hit();
      return reopen();
    }
    kRelistsInDoubt.hit();
    s_.version_lost = true;
    return begin();
  }

  WatcherStep operator()(const TimerDone&) { return s_.listing ? begin() : reopen(); }

 private:
  WatcherStep list() {
    WatcherStep out;
    s_.listing = true;
    s_.synthetic = false;
    out.begin_replace = s_.replacing = true;
    StartList next;
    if (!s_.version.empty() && !s_.version_lost) {
      next.version = s_.version;  // never back in time
    } else if (s_.options.stale_first_list && !s_.version_lost) {
      next.version = "0";
    }
    // With a version, pages would be read past the server's cache, from its database.
    if (next.version.empty() && !s_.pages_lost) next.limit = s_.options.page;
    out.next = next;
    return out;
  }

  WatcherStep reopen() {
    WatcherStep out;
    out.next = watch(s_.version, false);
    return out;
  }

  OpenWatch watch(std::string version, bool initial_events) {
    const auto spread = static_cast<int64_t>(moment_.random * 300);
    const Duration timeout = kShortestTimeout + seconds(spread);
    if (!initial_events) {
      s_.listing = false;
      s_.synthetic = version.empty() || version == "0";
    }
    return {.version = std::move(version),
            .initial_events = initial_events,
            .timeout = timeout,
            .silence = initial_events ? kInitialEventsSilence
                                      : std::min(timeout + seconds(5), kLongestSilence)};
  }

  WatcherStep without_watch_list() {
    kNoWatchList.hit();
    s_.use_watch_list = false;
    return list();
  }

  WatcherStep watch_failed(const Error& error) {
    if (is_expired(error) && !s_.replacing) {
      kVersionExpired.hit();
      // A list asks for our version first, and so for nothing older; only when the server cannot
      // serve that either do we ask for its newest.
      s_.watch_failing_since.reset();
      s_.listing = true;
      if (failed_lately()) return back_off(error);
      note_failure();
      return begin();
    }
    if (!s_.watch_failing_since) s_.watch_failing_since = moment_.now;
    const bool out_of_patience = moment_.now - *s_.watch_failing_since > kWatchPatience;
    if (is_too_large_version(error)) s_.version_lost = true;
    if (out_of_patience) kOutOfPatience.hit();
    if (out_of_patience || s_.version_lost) {
      s_.watch_failing_since.reset();
      s_.listing = true;
    }
    return back_off(error);
  }

  bool failed_lately() const {
    return s_.failures > 0 && moment_.now - s_.last_failure <= kQuietUntilForgiven;
  }

  void note_failure() {
    s_.failures = failed_lately() ? std::min(s_.failures + 1, 30) : 1;
    s_.last_failure = moment_.now;
  }

  // The next list is one of the newest: what the caches hold may be of an earlier definition.
  WatcherStep wait_for_definition(const Error& error) {
    if (!s_.missing) s_.failures = 0;
    note_failure();
    s_.trouble = error;
    s_.missing = s_.listing = s_.version_lost = true;
    s_.synced = false;
    s_.watch_failing_since.reset();
    const int doublings = std::min(s_.failures - 1, 10);
    const Duration longest =
        std::min(kFirstWaitForDefinition * (1 << doublings), kLongestWaitForDefinition);
    WatcherStep out;
    out.next = BackOff{longest - scaled(longest, moment_.random / 5)};
    return out;
  }

  WatcherStep back_off(const Error& error) {
    note_failure();
    s_.trouble = error;
    if (error.code == 401 || error.code == 403) s_.missing = false;  // so much is not known
    const int doublings = std::min(s_.failures - 1, 10);
    const Duration base = std::min(kFirstBackOff * (1 << doublings), kLongestBackOff);
    Duration length = base + scaled(base, moment_.random);
    if (error.retry_after) length = std::max(length, *error.retry_after);
    WatcherStep out;
    out.next = BackOff{length};
    return out;
  }

  void finish_replace(WatcherStep& out, const std::string& version) {
    s_.replacing = s_.version_lost = s_.pages_lost = s_.missing = false;
    out.finish_replace = true;
    out.synced = !s_.synced;
    s_.synced = true;
    s_.listing = false;
    s_.version = version;  // even when it is lower: a restored database starts again
    out.advance = true;
  }

  void advance(WatcherStep& out, const std::string& version) {
    if (version.empty()) return;
    s_.version = version;
    out.advance = true;
  }

  void heard() {
    s_.heard = true;
    recovered();
  }

  void recovered() {
    s_.trouble.reset();
    s_.watch_failing_since.reset();
  }

  WatcherState& s_;
  Moment moment_;
};

}  // namespace

WatcherStep start(WatcherState& state, Moment moment) {
  return Stepper(state, moment).begin();
}

WatcherStep step(WatcherState& state, const WatcherInput& input, Moment moment) {
  return std::visit(Stepper(state, moment), input);
}

}  // namespace grapnel::runtime
