#include "runtime/reflector.h"

#include <algorithm>

#include "base/log.h"
#include "base/probe.h"
#include "base/unless.h"
#include "document/line_splitter.h"
#include "document/list_splitter.h"
#include "kube/status.h"

namespace grapnel::runtime {
namespace {

Probe kPassedOver("informer: an object cannot be read");

constexpr size_t kMostNamesRemembered = 1000;
constexpr Duration kYoungWatch = seconds(10);

std::string_view text_of(const std::optional<JsonView>& value) {
  return value ? value->as_string().value_or("") : "";
}

kube::Uid uid_of(JsonView object) {
  const auto meta = object.find("metadata");
  return meta ? kube::Uid(text_of(meta->find("uid"))) : kube::Uid();
}

std::string version_of(JsonView object) {
  const auto meta = object.find("metadata");
  return meta ? std::string(text_of(meta->find("resourceVersion"))) : "";
}

bool ends_initial_events(JsonView object) {
  const auto meta = object.find("metadata");
  const auto annotations = meta ? meta->find("annotations") : std::nullopt;
  return annotations && text_of(annotations->find("k8s.io/initial-events-end")) == "true";
}

// One line of a watch as an input; nothing for a type this version does not know.
std::optional<WatcherInput> input_of(std::string_view type, JsonView object) {
  using Type = ObjectEvent::Type;
  if (type == "ADDED") return ObjectEvent{Type::kAdded, version_of(object)};
  if (type == "MODIFIED") return ObjectEvent{Type::kModified, version_of(object)};
  if (type == "DELETED") return ObjectEvent{Type::kDeleted, version_of(object)};
  if (type == "BOOKMARK") return Bookmark{version_of(object), ends_initial_events(object)};
  if (type == "ERROR") return ErrorEvent{kube::error_of_status(0, object.to_json())};
  return std::nullopt;
}

}  // namespace

kube::Key key_of(JsonView object) {
  const auto meta = object.find("metadata");
  if (!meta) return {};
  return {Interned(text_of(meta->find("namespace"))), std::string(text_of(meta->find("name")))};
}

Reflector::Reflector(kube::Client& client, Clock& clock, Random& random, InformerOptions options)
    : client_(client),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      state_(options_.watcher) {}

void Reflector::add(Projection& projection) {
  projections_.push_back(&projection);
  projection.base_cache().on_doubt([this](CacheBase::Doubt what) { doubt(what); });
}

bool Reflector::follows(const InformerOptions& options) const {
  const auto same = [](const kube::ListOptions& a, const kube::ListOptions& b) {
    return a.ns == b.ns && a.label_selector == b.label_selector &&
           a.field_selector == b.field_selector;
  };
  return options.kind == options_.kind && same(options.filter, options_.filter) &&
         options.watcher == options_.watcher;
}

size_t Reflector::objects() const {
  size_t most = 0;
  for (const Projection* projection : projections_) {
    most = std::max(most, projection->base_cache().size());
  }
  return most;
}

Task<> Reflector::run() {
  doubted_.emplace(co_await this_executor());
  state_ = WatcherState(options_.watcher);
  WatcherStep step = start(state_, moment());
  begin_replace_for(step);
  for (;;) {
    if (const auto* ask = std::get_if<StartList>(&step.next)) {
      step = take(co_await list(*ask));
    } else if (const auto* open = std::get_if<OpenWatch>(&step.next)) {
      step = co_await watch(*open);
    } else {
      co_await clock_.sleep(std::get<BackOff>(step.next).length);
      step = take(TimerDone{});
    }
  }
}

// Lets the watcher decide on an input, and does to the caches what it says.
WatcherStep Reflector::take(const WatcherInput& input, const JsonView* object) {
  const bool had_trouble = state_.trouble.has_value();
  const bool was_missing = state_.missing;
  const bool was_synced = state_.synced;
  WatcherStep step = runtime::step(state_, input, moment());
  if (state_.trouble && !had_trouble) {
    log_warning("cannot follow a kind", {{"kind", kind().kind}, {"why", state_.trouble->message}});
  }
  if (step.begin_replace) begin_replace_for(step);
  if (step.apply && object != nullptr) store(input, *object);
  if (step.finish_replace) finish_replace();
  if (step.advance) {
    const auto version = kube::parse_resource_version(state_.version);
    for (Projection* projection : projections_) projection->base_cache().advance(version);
  }
  if (state_.synced != was_synced || state_.missing != was_missing) {
    if (step.synced) log_info("cache synced", {{"kind", kind().kind}, {"objects", objects()}});
    for (Projection* projection : projections_) projection->note_change();
  }
  return step;
}

void Reflector::begin_replace_for(const WatcherStep& step) {
  const auto* list = std::get_if<StartList>(&step.next);
  replace_began_.reset();
  if (list == nullptr || list->version.empty()) {
    replace_began_ = clock_.instant();
    doubt_.reset();  // this is the answer to it
  }
  for (Projection* projection : projections_) projection->begin_replace();
}

void Reflector::finish_replace() {
  for (Projection* projection : projections_) {
    projection->finish_replace();
    if (replace_began_) projection->base_cache().set_complete_as_of(*replace_began_);
  }
  doubted_->notify_all();  // one that came meanwhile
}

void Reflector::store(const WatcherInput& input, JsonView object) {
  if (std::get<ObjectEvent>(input).type != ObjectEvent::Type::kDeleted) return upsert(object);
  const auto key = key_of(object);
  const auto uid = uid_of(object);
  for (Projection* projection : projections_) projection->erase(key, uid);
}

void Reflector::upsert(JsonView object) {
  std::optional<Error> fault;
  for (Projection* projection : projections_) {
    auto stored = projection->upsert(object);
    if (stored) continue;
    projection->keep(key_of(object));
    if (!fault) fault = std::move(stored.error());
  }
  if (fault) pass_over(key_of(object), *fault);
}

void Reflector::pass_over(const kube::Key& key, const Error& error) {
  kPassedOver.hit();
  ++undecodable_;
  if (passed_over_.size() < kMostNamesRemembered && passed_over_.insert(key.text()).second) {
    log_warning("an object cannot be read and is passed over", {{"kind", kind().kind},
                                                                {"namespace", key.ns.view()},
                                                                {"name", key.name},
                                                                {"why", error.message}});
  }
}

void Reflector::take_item(std::string_view item) {
  const auto object = parser_.parse(item);
  if (!object) return pass_over({}, object.error());
  upsert(*object);
}

Task<WatcherInput> Reflector::list(StartList ask) {
  kube::ListOptions options = options_.filter;
  options.resource_version = std::move(ask.version);
  options.limit = ask.limit;
  options.continue_token = std::move(ask.continue_token);
  auto body = co_await client_.open_list(kind(), std::move(options));
  if (!body) co_return ListFailed{std::move(body.error())};

  ListSplitter splitter([this](std::string_view item) {
    take_item(item);
    return Result<>();
  });
  for (;;) {
    const auto piece = co_await (*body)->read();
    if (!piece) co_return ListFailed{piece.error()};
    if (piece->empty()) break;
    if (const auto fed = splitter.feed(*piece); !fed) co_return ListFailed{fed.error()};
  }
  const auto frame = splitter.finish();
  if (!frame) co_return ListFailed{frame.error()};
  co_return ListPageDone{
      .version = std::string(string_or(at(*frame, "metadata", "resourceVersion"))),
      .continue_token = std::string(string_or(at(*frame, "metadata", "continue")))};
}

void Reflector::doubt(CacheBase::Doubt doubt) {
  // Many keys may doubt the same connection: a new one gets its chance first.
  const bool young = clock_.instant() - state_.opened < kYoungWatch;
  if (doubt == CacheBase::Doubt::kConnection && (young || doubt_)) return;
  doubt_ = doubt;
  if (doubted_) doubted_->notify_all();
}

Task<> Reflector::wait_for_doubt() {
  while (!doubt_ || state_.replacing) co_await doubted_->wait();
}

// One stream, to its end, or until the watcher or a doubt wants something else.
Task<WatcherStep> Reflector::watch(OpenWatch ask) {
  WatcherStep next;
  if (!doubt_ && co_await unless(wait_for_doubt(), read_watch(std::move(ask), next))) {
    co_return next;
  }
  const auto doubt = *std::exchange(doubt_, std::nullopt);
  log_info("the cache may be behind",
           {{"kind", kind().kind},
            {"then", doubt == CacheBase::Doubt::kContents ? "list again" : "watch again"}});
  co_return take(Doubted{doubt == CacheBase::Doubt::kContents});
}

Task<> Reflector::read_watch(OpenWatch ask, WatcherStep& next) {
  auto body = co_await client_.open_watch(kind(), {.ns = options_.filter.ns,
                                                   .label_selector = options_.filter.label_selector,
                                                   .field_selector = options_.filter.field_selector,
                                                   .resource_version = ask.version,
                                                   .send_initial_events = ask.initial_events,
                                                   .timeout = ask.timeout,
                                                   .idle_timeout = ask.silence});
  if (!body) {
    next = take(WatchRefused{std::move(body.error())});
    co_return;
  }
  take(WatchOpened{});
  LineSplitter lines;
  Instant last_heard = clock_.instant();
  for (;;) {
    const auto piece = co_await (*body)->read();
    if (!piece) {
      const bool silent = clock_.instant() - last_heard >= ask.silence;
      next = silent ? take(Silence{}) : take(StreamFailed{piece.error()});
      co_return;
    }
    if (piece->empty()) {
      next = take(StreamEnded{});
      co_return;
    }
    last_heard = clock_.instant();
    std::optional<WatcherStep> wants;
    const auto fed = lines.feed(*piece, [&](std::string_view line) -> Result<> {
      wants = take_line(line);
      return wants ? Result<>(fail(Reason::kCancelled, "enough of this stream")) : Result<>();
    });
    if (!wants && !fed) wants = take(StreamFailed{fed.error()});
    if (wants) {
      next = std::move(*wants);
      co_return;
    }
  }
}

// What to do next when that is not to go on reading.
std::optional<WatcherStep> Reflector::take_line(std::string_view line) {
  const auto event = parser_.parse(line);
  const auto object = event ? event->find("object") : std::nullopt;
  if (!object) {
    return take(StreamFailed{
        Error{.reason = Reason::kDecode, .message = "a line of the watch is not an event"}});
  }
  const auto input = input_of(text_of(event->find("type")), *object);
  if (!input) return std::nullopt;
  auto step = take(*input, &*object);
  if (std::holds_alternative<GoOn>(step.next)) return std::nullopt;
  return step;
}

}  // namespace grapnel::runtime
