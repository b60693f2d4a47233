#include "runtime/events.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/probe.h"

namespace grapnel::runtime {
namespace {

Probe kSeries("events: one is told again as a series");
Probe kRefusedEvent("events: one was refused");
Probe kGivenUp("events: one was given up");

constexpr size_t kLongestNote = 1024;  // the API's own limit
constexpr size_t kLongestName = 230;   // with our suffix below its 253
constexpr int kTries = 4;
constexpr Duration kBetweenTries = seconds(5);
constexpr Duration kSweepEvery = minutes(1);

// Cut where a character ends.
std::string shortened(std::string text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text + "...";
}

std::string_view type_of(const Event& event) {
  return event.type == Event::Type::kWarning ? "Warning" : "Normal";
}

// Events of what has no namespace are in this one.
std::string namespace_of(const ObjectRef& regarding) {
  return regarding.key.ns.empty() ? "default" : regarding.key.ns.str();
}

// Another message is another event: "first failed job: b" must not be lost behind "…: a".
std::string series_key(const Event& event) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", type_of(event), event.reason, event.action,
                     event.regarding.kind->plural, event.regarding.key.text(),
                     event.regarding.uid.text(), event.message);
}

}  // namespace

Json EventSeries::first_event(const Event& event, const std::string& name, Time now) const {
  const ObjectRef& about = event.regarding;
  JsonObject regarding{{"apiVersion", about.kind->api_version()},
                       {"kind", about.kind->kind},
                       {"name", about.key.name}};
  if (!about.key.ns.empty()) regarding["namespace"] = about.key.ns.view();
  if (!about.uid.empty()) regarding["uid"] = about.uid.text();
  return JsonObject{{"apiVersion", "events.k8s.io/v1"},
                    {"kind", "Event"},
                    {"metadata", JsonObject{{"name", name}, {"namespace", namespace_of(about)}}},
                    {"eventTime", format_micro_time(now)},
                    {"reportingController", options_.controller},
                    {"reportingInstance", options_.instance},
                    {"action", event.action},
                    {"reason", event.reason},
                    {"regarding", std::move(regarding)},
                    {"note", shortened(event.message, kLongestNote)},
                    {"type", type_of(event)}};
}

std::optional<EventToSend> EventSeries::record(const Event& event, Time now) {
  const auto key = series_key(event);
  const auto found = series_.find(key);
  if (found != series_.end() && now - found->second.last < options_.series_ends_after) {
    Series& series = found->second;
    ++series.count;
    series.last = now;
    if (series.count > 2) return std::nullopt;  // sweep() tells the rest
    return update(series, now);
  }
  make_room();
  const std::string name =
      fmt::format("{}.{:x}", shortened(event.regarding.key.name, kLongestName),
                  now.time_since_epoch().count() * 1000 + static_cast<int64_t>(++number_ % 1000));
  Series series{.event = first_event(event, name, now),
                .ns = namespace_of(event.regarding),
                .name = name,
                .last = now,
                .last_sent = now};
  EventToSend out{.ns = series.ns, .name = name, .event = series.event};
  series_[key] = std::move(series);
  return out;
}

EventToSend EventSeries::update(Series& series, Time now) const {
  kSeries.hit();
  series.sent = series.count;
  series.last_sent = now;
  series.event.as_object()["series"] =
      JsonObject{{"count", series.count}, {"lastObservedTime", format_micro_time(series.last)}};
  return {.ns = series.ns, .name = series.name, .event = series.event, .patch = true};
}

std::vector<EventToSend> EventSeries::sweep(Time now) {
  std::vector<EventToSend> out;
  for (auto i = series_.begin(); i != series_.end();) {
    Series& series = i->second;
    const bool over = now - series.last >= options_.series_ends_after;
    const bool old = now - series.last_sent >= options_.series_refreshed_every;
    if (series.sent < series.count && (over || old)) out.push_back(update(series, now));
    i = over ? series_.erase(i) : std::next(i);
  }
  return out;
}

void EventSeries::make_room() {
  if (series_.size() < options_.most_series) return;
  const auto oldest =
      std::ranges::min_element(series_, {}, [](const auto& entry) { return entry.second.last; });
  series_.erase(oldest);
}

EventRecorder::EventRecorder(Executor executor, kube::Client& client, Clock& clock,
                             EventOptions options)
    : client_(client), clock_(clock), options_(options), series_(options), filled_(executor) {}

void EventRecorder::record(const Event& event) {
  log_info(event.message, {{"kind", event.regarding.kind->kind},
                           {"namespace", event.regarding.key.ns.view()},
                           {"name", event.regarding.key.name},
                           {"reason", event.reason}});
  if (auto out = series_.record(event, clock_.now())) push(std::move(*out));
}

void EventRecorder::push(EventToSend event) {
  if (queue_.size() >= options_.longest_queue) {
    ++dropped_;
    return;
  }
  queue_.push_back(std::move(event));
  filled_.notify_all();
}

Task<> EventRecorder::run() {
  Instant next_sweep = clock_.instant() + kSweepEvery;
  for (;;) {
    co_await send_all();
    const auto waiting = [](EventRecorder& self) -> Task<> {
      while (self.queue_.empty()) co_await self.filled_.wait();
    };
    if (co_await with_deadline(clock_, next_sweep, waiting(*this))) continue;
    next_sweep = clock_.instant() + kSweepEvery;
    for (auto& event : series_.sweep(clock_.now())) push(std::move(event));
  }
}

Task<> EventRecorder::flush(Duration longest) {
  co_await with_deadline(clock_, clock_.instant() + longest, send_all());
}

Task<> EventRecorder::send_all() {
  while (!queue_.empty()) {
    EventToSend next = std::move(queue_.front());
    queue_.pop_front();
    co_await send(std::move(next));
  }
}

Task<> EventRecorder::send(EventToSend event) {
  for (int i = 0; i < kTries; ++i) {
    Result<Json> answer = Json();
    if (event.patch) {
      JsonObject change{{"series", event.event.as_object()["series"]}};
      answer = co_await client_.patch(kube::kinds::kEvent, {.ns = event.ns, .name = event.name},
                                      kube::PatchType::kMerge, std::move(change));
    } else {
      answer = co_await client_.create(kube::kinds::kEvent, event.event);
    }
    if (answer || answer.error().is(Reason::kAlreadyExists)) co_return;
    if (event.patch && answer.error().is(Reason::kNotFound)) {
      event.patch = false;  // events live an hour; the series goes on in a new one
      continue;
    }
    if (!answer.error().is_transient()) {
      kRefusedEvent.hit();
      log_warning("an event was refused", {{"name", event.name}, {"why", answer.error().message}});
      co_return;
    }
    co_await clock_.sleep(answer.error().retry_after.value_or(kBetweenTries));
  }
  kGivenUp.hit();
  ++dropped_;
}

}  // namespace grapnel::runtime
