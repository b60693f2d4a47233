#include "local/store/store.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/log.h"
#include "local/store/collection.h"

namespace grapnel::local {
namespace {

// What a change costs in addition to its bytes.
constexpr size_t kChangeOverhead = 256;
// Never fewer changes than this, however large they are.
constexpr size_t kLeastHistory = 64;

Failure expired() {
  return fail(Reason::kExpired, "the version asked for is older than the history");
}

}  // namespace

// Writes that will be, or are being, committed together.
struct Store::Batch {
  explicit Batch(const Executor& executor) : ended(executor) {}
  std::vector<Write> writes;
  Result<> result;
  bool done = false;
  Signal ended;
};

struct Store::Commits {
  explicit Commits(const Executor& executor) : idle(executor) {}
  std::shared_ptr<Batch> open;  // takes new writes
  bool running = false;
  Signal idle;
  Spawned task;
  boost::asio::thread_pool thread{1};
};

Store::Store(Executor executor, StoreOptions options)
    : executor_(std::move(executor)), options_(std::move(options)) {}

Store::~Store() {
  if (commits_) {
    commits_->task.cancel();
    commits_->thread.join();
  }
}

Result<std::unique_ptr<Store>> Store::open(Executor executor, StoreOptions options) {
  std::unique_ptr<Store> store(new Store(std::move(executor), std::move(options)));
  if (store->options_.path.empty()) return store;
  auto database = Database::open(store->options_.path);
  if (!database) return fail(database.error());
  store->database_ = std::move(*database);
  if (auto loaded = store->load(); !loaded) return fail(loaded.error());
  store->commits_ = std::make_unique<Commits>(store->executor_);
  return store;
}

Result<> Store::load() {
  JsonParser parser;
  auto version = database_->load([&](std::string resource, Object object) {
    if (auto view = parser.parse(object.json)) object.labels = pack_labels(*view);
    std::string key = object.key;
    collection(resource).objects[std::move(key)] = std::make_shared<Object>(std::move(object));
  });
  if (!version) return fail(version.error());
  assigned_ = visible_ = floor_ = *version;
  return {};
}

Collection& Store::collection(std::string_view resource) {
  auto& place = collections_[absl::string_view(resource.data(), resource.size())];
  if (!place) {
    place = std::make_shared<Collection>(executor_);
  }
  return *place;
}

const Collection* Store::find(std::string_view resource) const {
  const auto it = collections_.find(absl::string_view(resource.data(), resource.size()));
  return it == collections_.end() ? nullptr : it->second.get();
}

ObjectPtr Store::get(std::string_view resource, std::string_view key) const {
  const Collection* in = find(resource);
  if (in == nullptr) return nullptr;
  const auto it = in->objects.find(absl::string_view(key.data(), key.size()));
  return it == in->objects.end() ? nullptr : it->second;
}

size_t Store::count(std::string_view resource) const {
  const Collection* in = find(resource);
  return in == nullptr ? 0 : in->objects.size();
}

Task<> Store::settle(std::string resource, std::string key) {
  Collection& in = collection(resource);
  while (in.pending.contains(key)) co_await in.settled.wait();
}

Task<Result<ObjectPtr>> Store::put(std::string resource, std::string key, Render render) {
  return write(std::move(resource), std::move(key), std::move(render), false);
}

Task<Result<ObjectPtr>> Store::remove(std::string resource, std::string key, Render render) {
  return write(std::move(resource), std::move(key), std::move(render), true);
}

Task<Result<ObjectPtr>> Store::write(std::string resource, std::string key, Render render,
                                     bool deleted) {
  Collection& in = collection(resource);
  const uint64_t version = ++assigned_;
  auto object = std::make_shared<Object>();
  const auto before = in.objects.find(key);
  const ObjectPtr previous = before == in.objects.end() ? nullptr : before->second;
  object->version = version;
  object->created = previous ? previous->created : version;
  object->json = render(version);
  JsonParser parser;
  if (auto view = parser.parse(object->json)) object->labels = pack_labels(*view);
  object->key = key;
  Write write{
      .resource = std::move(resource), .object = object, .previous = previous, .deleted = deleted};
  if (!commits_) {
    std::vector<Write> writes;
    writes.push_back(std::move(write));
    publish(writes);
    co_return object;
  }
  in.pending.insert(std::move(key));
  if (!commits_->open) commits_->open = std::make_shared<Batch>(executor_);
  const std::shared_ptr<Batch> batch = commits_->open;
  batch->writes.push_back(std::move(write));
  if (!commits_->running) {
    commits_->running = true;
    commits_->task = spawn(executor_, commit_batches());
  }
  while (!batch->done) co_await batch->ended.wait();
  if (!batch->result) co_return fail(batch->result.error());
  co_return object;
}

Task<> Store::commit_batches() {
  while (commits_->open) {
    const std::shared_ptr<Batch> batch = std::exchange(commits_->open, nullptr);
    // The coroutine's own parameters outlive its run; a capture would not.
    constexpr auto commit = [](Database& database, Batch& on_thread) -> Task<Result<>> {
      co_return database.commit(on_thread.writes);
    };
    batch->result = co_await boost::asio::co_spawn(commits_->thread, commit(*database_, *batch),
                                                   boost::asio::use_awaitable);
    if (batch->result) {
      publish(batch->writes);
    } else {
      log_error("a commit failed", {{"error", batch->result.error().message}});
    }
    for (const Write& write : batch->writes) {
      Collection& in = collection(write.resource);
      in.pending.erase(write.object->key);
      in.settled.notify_all();
    }
    batch->done = true;
    batch->ended.notify_all();
  }
  commits_->running = false;
  commits_->idle.notify_all();
}

Task<> Store::close() {
  while (commits_ && commits_->running) co_await commits_->idle.wait();
}

void Store::publish(const std::vector<Write>& writes) {
  std::vector<Collection*> touched;
  for (const Write& write : writes) {
    Collection& in = collection(write.resource);
    if (write.deleted) {
      in.objects.erase(write.object->key);
    } else {
      in.objects[write.object->key] = write.object;
    }
    in.changes.push_back(Change{.version = write.object->version,
                                .object = write.object,
                                .previous = write.previous,
                                .deleted = write.deleted});
    const size_t cost = write.object->json.size() + kChangeOverhead;
    order_.emplace_back(&in, cost);
    history_cost_ += cost;
    visible_ = write.object->version;
    for (const auto& listener : listeners_) listener(write.resource, in.changes.back());
    if (touched.empty() || touched.back() != &in) touched.push_back(&in);
  }
  trim();
  for (Collection* in : touched) in->changed.notify_all();
}

void Store::trim() {
  while (history_cost_ > options_.history_bytes && order_.size() > kLeastHistory) {
    const auto [in, cost] = order_.front();
    order_.pop_front();
    history_cost_ -= cost;
    in->dropped_version = in->changes.front().version;
    in->changes.pop_front();
    ++in->dropped;
  }
}

void Store::on_change(std::function<void(std::string_view, const Change&)> listener) {
  listeners_.push_back(std::move(listener));
}

absl::btree_map<std::string, ObjectPtr> differences_at(const Collection& collection,
                                                       uint64_t version) {
  absl::btree_map<std::string, ObjectPtr> differences;
  for (auto it = collection.changes.rbegin();
       it != collection.changes.rend() && it->version > version; ++it) {
    differences[it->object->key] = it->previous;  // the oldest change after it wins
  }
  return differences;
}

Result<Page> Store::list(std::string_view resource, const ListRange& range) const {
  Page page;
  page.version = range.version == 0 ? visible_ : range.version;
  const Collection* in = find(resource);
  if (page.version < floor_ || (in != nullptr && page.version < in->dropped_version)) {
    return expired();
  }
  if (in == nullptr) return page;
  const auto then = page.version < visible_ ? differences_at(*in, page.version)
                                            : absl::btree_map<std::string, ObjectPtr>{};
  // Two ordered walks in step: what is there now, and what was different then.
  const std::string& start = std::max(range.prefix, range.after);
  auto now_it = in->objects.lower_bound(start);
  auto then_it = then.lower_bound(start);
  while (now_it != in->objects.end() || then_it != then.end()) {
    const bool old =
        then_it != then.end() && (now_it == in->objects.end() || then_it->first <= now_it->first);
    const std::string& key = old ? then_it->first : now_it->first;
    const ObjectPtr& object = old ? then_it->second : now_it->second;
    if (!key.starts_with(range.prefix)) break;
    if (object && key > range.after && (!range.filter || range.filter(*object))) {
      if (range.limit == 0 || page.items.size() < range.limit) {
        page.items.push_back(object);
      } else {
        page.more = true;
        ++page.remaining;
        if (range.filter) break;
      }
    }
    if (now_it != in->objects.end() && (!old || now_it->first == key)) ++now_it;
    if (old) ++then_it;
  }
  return page;
}

Result<Store::Cursor> Store::changes_after(std::string_view resource, uint64_t version) {
  Collection& in = collection(resource);
  if (version < floor_ || version < in.dropped_version) return expired();
  Cursor cursor;
  cursor.collection_ =
      collections_.find(absl::string_view(resource.data(), resource.size()))->second;
  const auto first =
      std::upper_bound(in.changes.begin(), in.changes.end(), version,
                       [](uint64_t v, const Change& change) { return v < change.version; });
  cursor.position_ = in.dropped + static_cast<uint64_t>(first - in.changes.begin());
  return cursor;
}

Result<const Change*> Store::Cursor::next() {
  if (position_ < collection_->dropped) return expired();
  const uint64_t index = position_ - collection_->dropped;
  if (index >= collection_->changes.size()) return nullptr;
  ++position_;
  return &collection_->changes[index];
}

Task<> Store::Cursor::changed() {
  const auto kept = collection_;
  co_await kept->changed.wait();
}

}  // namespace grapnel::local
