#include "local/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <rapidcheck/gtest.h>
#include <boost/asio/io_context.hpp>
#include <filesystem>

#include "local/store/collection.h"

namespace grapnel::local {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/grapnel-store-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file() const { return path_ + "/store.db"; }

 private:
  std::string path_;
};

std::unique_ptr<Store> open_store(boost::asio::io_context& loop, std::string path = "",
                                  size_t history = 16UL << 20) {
  auto store =
      Store::open(loop.get_executor(), {.path = std::move(path), .history_bytes = history});
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

void run(boost::asio::io_context& loop, Task<> task) {
  auto handle = spawn(loop.get_executor(), std::move(task));
  loop.run();
  loop.restart();
  EXPECT_TRUE(handle.done());
}

Task<> put(Store& store, std::string key, std::string text) {
  co_await store.settle("pods", key);
  auto done = co_await store.put("pods", key, [text](uint64_t version) {
    return R"({"metadata":{"labels":{"v":")" + text + R"("}},"rv":)" + std::to_string(version) +
           "}";
  });
  EXPECT_TRUE(done.has_value());
}

Task<> remove(Store& store, std::string key) {
  co_await store.settle("pods", key);
  auto done = co_await store.remove("pods", key, [](uint64_t) { return "{}"; });
  EXPECT_TRUE(done.has_value());
}

std::vector<std::string> keys(const Page& page) {
  std::vector<std::string> result;
  for (const auto& item : page.items) result.push_back(item->key);
  return result;
}

TEST(Store, KeepsObjectsAcrossARestart) {
  Folder folder;
  boost::asio::io_context loop;
  uint64_t version = 0;
  {
    auto store = open_store(loop, folder.file());
    run(loop, put(*store, "a/x", "1"));
    run(loop, put(*store, "a/y", "1"));
    run(loop, put(*store, "a/x", "2"));
    run(loop, remove(*store, "a/y"));
    version = store->version();
  }
  auto store = open_store(loop, folder.file());
  EXPECT_EQ(store->version(), version);
  EXPECT_EQ(store->count("pods"), 1U);
  EXPECT_EQ(store->get("pods", "a/x")->label("v"), "2");
  EXPECT_EQ(store->get("pods", "a/x")->version, 3U);
  EXPECT_FALSE(store->changes_after("pods", version - 1).has_value());
  EXPECT_TRUE(store->changes_after("pods", version).has_value());
}

TEST(Store, RefusesASecondServerOnTheSameFile) {
  Folder folder;
  boost::asio::io_context loop;
  auto store = open_store(loop, folder.file());
  EXPECT_FALSE(Store::open(loop.get_executor(), {.path = folder.file()}).has_value());
}

TEST(Store, CommitsWaitingWritesTogetherAndInOrder) {
  Folder folder;
  boost::asio::io_context loop;
  auto store = open_store(loop, folder.file());
  std::vector<uint64_t> seen;
  store->on_change([&seen](std::string_view, const Change& c) { seen.push_back(c.version); });
  std::vector<Task<>> tasks;
  for (int i = 0; i < 100; ++i) tasks.push_back(put(*store, "a/" + std::to_string(i % 40), "x"));
  run(loop, all(std::move(tasks)));
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(store->count("pods"), 40U);
}

TEST(Store, ListsAtAnOlderVersion) {
  boost::asio::io_context loop;
  auto store = open_store(loop);
  run(loop, put(*store, "a/x", "1"));
  run(loop, put(*store, "a/z", "1"));
  const uint64_t then = store->version();
  run(loop, put(*store, "a/y", "1"));
  run(loop, remove(*store, "a/x"));
  run(loop, put(*store, "a/z", "2"));
  const auto now = store->list("pods", {.prefix = "a/"});
  EXPECT_THAT(keys(*now), ElementsAre("a/y", "a/z"));
  const auto old = store->list("pods", {.prefix = "a/", .version = then});
  EXPECT_THAT(keys(*old), ElementsAre("a/x", "a/z"));
  EXPECT_EQ(old->items[1]->label("v"), "1");
  const auto other = store->list("pods", {.prefix = "b/"});
  EXPECT_THAT(keys(*other), IsEmpty());
}

TEST(Store, PagesAreOneSnapshot) {
  boost::asio::io_context loop;
  auto store = open_store(loop);
  for (const char* key : {"a/1", "a/2", "a/3", "b/1"}) run(loop, put(*store, key, "1"));
  const auto first = store->list("pods", {.limit = 2});
  EXPECT_THAT(keys(*first), ElementsAre("a/1", "a/2"));
  EXPECT_TRUE(first->more);
  EXPECT_EQ(first->remaining, 2U);
  run(loop, remove(*store, "a/3"));
  run(loop, put(*store, "a/4", "1"));
  const auto second = store->list("pods", {.after = "a/2", .limit = 2, .version = first->version});
  EXPECT_THAT(keys(*second), ElementsAre("a/3", "b/1"));
  EXPECT_FALSE(second->more);
}

TEST(Store, TellsChangesFromAVersionOn) {
  boost::asio::io_context loop;
  auto store = open_store(loop);
  run(loop, put(*store, "a/x", "1"));
  const uint64_t then = store->version();
  auto cursor = store->changes_after("pods", then);
  ASSERT_TRUE(cursor.has_value());
  EXPECT_EQ(*cursor->next(), nullptr);
  run(loop, put(*store, "a/x", "2"));
  run(loop, remove(*store, "a/x"));
  const Change* change = *cursor->next();
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(change->version, then + 1);
  EXPECT_EQ(change->previous->label("v"), "1");
  change = *cursor->next();
  ASSERT_NE(change, nullptr);
  EXPECT_TRUE(change->deleted);
  EXPECT_EQ(*cursor->next(), nullptr);
}

TEST(Store, ForgetsChangesBeyondItsBudget) {
  boost::asio::io_context loop;
  auto store = open_store(loop, "", 1);
  run(loop, put(*store, "a/x", "0"));
  auto cursor = store->changes_after("pods", store->version());
  for (int i = 0; i < 200; ++i) run(loop, put(*store, "a/x", std::to_string(i)));
  EXPECT_EQ(cursor->next().error().reason, Reason::kExpired);
  EXPECT_EQ(store->changes_after("pods", 1).error().reason, Reason::kExpired);
  EXPECT_EQ(store->list("pods", {.version = 1}).error().reason, Reason::kExpired);
  EXPECT_TRUE(store->changes_after("pods", store->version() - 10).has_value());
}

// Whatever happens, a list at a version equals what a list said when that version was the newest.
RC_GTEST_PROP(StoreProperty, AnOldListIsWhatWasThen, ()) {
  boost::asio::io_context loop;
  auto store = open_store(loop);
  std::vector<std::pair<uint64_t, std::vector<std::string>>> said;
  const auto steps = *rc::gen::container<std::vector<std::pair<int, bool>>>(
      rc::gen::pair(rc::gen::inRange(0, 8), rc::gen::arbitrary<bool>()));
  for (const auto& [number, add] : steps) {
    const std::string key = "n/" + std::to_string(number);
    if (add) {
      run(loop, put(*store, key, "x"));
    } else if (store->get("pods", key)) {
      run(loop, remove(*store, key));
    }
    said.emplace_back(store->version(), keys(*store->list("pods", {})));
  }
  for (const auto& [version, list] : said) {
    if (version > 0) RC_ASSERT(keys(*store->list("pods", {.version = version})) == list);
  }
}

}  // namespace
}  // namespace grapnel::local
