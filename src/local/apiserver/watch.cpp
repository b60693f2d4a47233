#include "local/apiserver/watch.h"

#include <fmt/format.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <charconv>

#include "local/apiserver/list_options.h"
#include "local/apiserver/reply.h"
#include "local/apiserver/selection.h"
#include "local/apiserver/table.h"
#include "local/apiserver/write.h"

namespace grapnel::local {
namespace {

// As Kubernetes: bookmarks once a minute, and one shortly before the end.
constexpr Duration kBookmarkEvery = minutes(1);
constexpr Duration kBookmarkBeforeEnd = seconds(2);
constexpr int64_t kDefaultTimeout = 1800;
constexpr size_t kWriteSize = 64 * 1024;

struct WatchOptions {
  uint64_t version = 0;
  bool from_now = false;        // no version given, and no initial events wanted
  bool initial_events = false;  // the present state first
  bool marks_initial_end = false;
  bool bookmarks = false;
  Duration timeout{};

  static Answer<WatchOptions> parse(const Call& call, Random& random);
};

Answer<WatchOptions> WatchOptions::parse(const Call& call, Random& random) {
  WatchOptions options;
  const std::string_view given = call.query("resourceVersion");
  const auto version = parse_version(given);
  if (!version) return Refusal(version.error());
  options.version = *version;
  const std::string_view match = call.query("resourceVersionMatch");
  if (call.target.has("sendInitialEvents")) {
    const bool wanted = parse_flag(call.query("sendInitialEvents"));
    if (match != "NotOlderThan") {
      FieldErrors errors;
      errors.forbidden("resourceVersionMatch",
                       "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
      if (!match.empty()) errors.not_supported("resourceVersionMatch", match, {"NotOlderThan"});
      return Refusal(invalid("meta.k8s.io", "ListOptions", "", errors.take()));
    }
    options.initial_events = wanted;
    options.marks_initial_end = wanted;
    options.from_now = !wanted && *version == 0;
  } else {
    if (!match.empty()) {
      FieldErrors errors;
      errors.forbidden(
          "resourceVersionMatch",
          "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
      return Refusal(invalid("meta.k8s.io", "ListOptions", "", errors.take()));
    }
    options.initial_events = *version == 0;
  }
  options.bookmarks =
      call.target.has("allowWatchBookmarks") && parse_flag(call.query("allowWatchBookmarks"));
  int64_t timeout = 0;
  const std::string_view text = call.query("timeoutSeconds");
  std::from_chars(text.data(), text.data() + text.size(), timeout);
  if (timeout <= 0) {
    timeout = kDefaultTimeout + static_cast<int64_t>(random.below(kDefaultTimeout));
  }
  options.timeout = seconds(timeout);
  return options;
}

// Turns changes into lines, in the form the client asked for.
class Encoder {
 public:
  Encoder(const Api& api, const Call& call) : api_(api), call_(call) {}

  void add(std::string& out, std::string_view type, const Object& object) {
    if (call_.accepted.form == Form::kObject && is_stored_version(*call_.type)) {
      frame(out, type, object.json);
    } else {
      add_json(out, type, object_as(*call_.type, object));
    }
  }
  // An object that no longer matches: as it was, with the version of the change.
  void add_gone(std::string& out, const Object& previous, uint64_t version) {
    Json object = object_as(*call_.type, previous);
    object.as_object()["metadata"].as_object()["resourceVersion"] = std::to_string(version);
    add_json(out, "DELETED", object);
  }
  void add_bookmark(std::string& out, uint64_t version, bool initial_end) {
    JsonObject meta{{"resourceVersion", std::to_string(version)}, {"creationTimestamp", nullptr}};
    if (initial_end) {
      meta["annotations"] = JsonObject{{"k8s.io/initial-events-end", "true"}};
    }
    const Json object = JsonObject{{"kind", call_.type->kind},
                                   {"apiVersion", call_.type->api_version()},
                                   {"metadata", std::move(meta)}};
    add_json(out, "BOOKMARK", object);
  }
  void add_error(std::string& out, const ApiError& error) {
    frame(out, "ERROR", to_text(to_status(error)));
  }

 private:
  void add_json(std::string& out, std::string_view type, const Json& object) {
    switch (call_.accepted.form) {
      case Form::kTable: {
        TableOptions options = TableOptions::from(call_, api_.clock.now());
        options.no_headers = std::exchange(headers_sent_, true);
        frame(out, type, to_text(table_of(*call_.type, {object}, options)));
        return;
      }
      case Form::kPartial:
        frame(out, type, to_text(partial_of(object)));
        return;
      case Form::kObject:
        frame(out, type, to_text(object));
        return;
    }
  }
  static void frame(std::string& out, std::string_view type, std::string_view object) {
    out.append(R"({"type":")").append(type).append(R"(","object":)").append(object).append("}\n");
  }

  const Api& api_;
  const Call& call_;
  bool headers_sent_ = false;
};

// How one change looks to one selection.
void add_change(Encoder& encoder, std::string& out, const Selection& selection,
                const Change& change) {
  const bool before = change.previous && selection.matches(*change.previous);
  if (change.deleted) {
    if (before) encoder.add(out, "DELETED", *change.object);
    return;
  }
  const bool after = selection.matches(*change.object);
  if (after) {
    encoder.add(out, before ? "MODIFIED" : "ADDED", *change.object);
  } else if (before) {
    encoder.add_gone(out, *change.previous, change.version);
  }
}

bool in_namespace(const Selection& selection, const Change& change) {
  return change.object->key.starts_with(selection.prefix());
}

class Watch {
 public:
  Watch(Api& api, Call& call, http::Exchange& exchange, Selection selection, WatchOptions options)
      : api_(api),
        call_(call),
        exchange_(exchange),
        selection_(std::move(selection)),
        options_(options),
        encoder_(api, call) {}

  Task<> run() {
    http::Response head;
    head.headers.set("content-type", "application/json");
    head.headers.set("cache-control", "no-cache, private");
    for (const std::string& warning : call_.warnings) add_warning(head, warning);
    if (!co_await exchange_.begin(std::move(head))) co_return;
    const Instant end = api_.clock.instant() + options_.timeout;
    const std::string collection = call_.type->collection();
    uint64_t from = options_.version;
    if (options_.from_now) from = api_.store.version();
    if (options_.initial_events) from = add_present(collection);
    auto cursor = api_.store.changes_after(collection, from);
    if (!cursor) {
      encoder_.add_error(out_, too_old(options_.version));
      (void)co_await flush();
      co_return;
    }
    if (!co_await flush()) co_return;
    co_await follow(*cursor, end);
  }

 private:
  ApiError too_old(uint64_t version) const {
    return expired(fmt::format("too old resource version: {} ({})", version, api_.store.version()));
  }

  uint64_t add_present(const std::string& collection) {
    ListRange range{.prefix = selection_.prefix()};
    range.filter = [this](const Object& object) { return selection_.matches(object); };
    const auto page = api_.store.list(collection, range);
    if (!page) return 0;
    for (const ObjectPtr& item : page->items) encoder_.add(out_, "ADDED", *item);
    if (options_.marks_initial_end && options_.bookmarks) {
      encoder_.add_bookmark(out_, page->version, true);
    }
    return page->version;
  }

  Task<bool> flush() {
    if (out_.empty()) co_return true;
    std::string bytes = std::exchange(out_, {});
    const auto written = co_await exchange_.write(bytes);
    co_return written.has_value();
  }

  // False: the watch is over.
  Task<bool> drain(Store::Cursor& cursor) {
    for (;;) {
      const auto change = cursor.next();
      if (!change) {
        // The watch is ended instead of queueing for it: the client lists again.
        encoder_.add_error(out_, too_old(seen_));
        (void)co_await flush();
        co_return false;
      }
      if (*change == nullptr) {
        if (out_.empty()) co_return true;
        if (!co_await flush()) co_return false;
        continue;  // more may have come while we wrote
      }
      seen_ = (*change)->version;
      if (in_namespace(selection_, **change)) add_change(encoder_, out_, selection_, **change);
      if (out_.size() >= kWriteSize && !co_await flush()) co_return false;
    }
  }

  bool is_served() const {
    return api_.registry.find(call_.type->group, call_.type->version, call_.type->plural) !=
           nullptr;
  }

  Task<> follow(Store::Cursor& cursor, Instant end) {
    Instant bookmark = api_.clock.instant() + kBookmarkEvery;
    bool last_bookmark = false;
    for (;;) {
      if (!co_await drain(cursor)) co_return;
      const Instant now = api_.clock.instant();
      if (now >= end || !is_served()) break;
      const Instant before_end = end - kBookmarkBeforeEnd;
      if (options_.bookmarks && (now >= bookmark || (!last_bookmark && now >= before_end))) {
        encoder_.add_bookmark(out_, api_.store.version(), false);
        last_bookmark = now >= before_end;
        bookmark = now + kBookmarkEvery;
        if (!co_await flush()) co_return;
        continue;
      }
      Instant wake = end;
      if (options_.bookmarks) {
        wake = std::min(wake, bookmark);
        if (!last_bookmark) wake = std::min(wake, before_end);
      }
      (void)co_await with_deadline(api_.clock, wake, cursor.changed());
    }
  }

  Api& api_;
  Call& call_;
  http::Exchange& exchange_;
  Selection selection_;
  WatchOptions options_;
  Encoder encoder_;
  std::string out_;
  uint64_t seen_ = 0;
};

}  // namespace

Task<> serve_watch(Api& api, Call& call, http::Exchange& exchange) {
  auto selection = Selection::parse(call);
  if (!selection) {
    co_await respond_error(exchange, selection.error());
    co_return;
  }
  const auto options = WatchOptions::parse(call, api.random);
  if (!options) {
    co_await respond_error(exchange, options.error());
    co_return;
  }
  if (options->version > api.store.version()) {
    co_await respond_error(exchange, version_too_large(options->version, api.store.version()));
    co_return;
  }
  Watch watch(api, call, exchange, std::move(*selection), *options);
  using namespace boost::asio::experimental::awaitable_operators;
  const auto ended = co_await (watch.run() || exchange.closed());
  if (ended.index() == 0) (void)co_await exchange.finish();
}

}  // namespace grapnel::local
