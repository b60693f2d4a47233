#include "runtime/cache.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#if __has_feature(address_sanitizer)
#include <sanitizer/allocator_interface.h>
#endif

namespace grapnel::runtime {
namespace {

using testing::ElementsAre;

size_t allocated_bytes() {
#if __has_feature(address_sanitizer)
  return __sanitizer_get_current_allocated_bytes();
#else
  return mallinfo2().uordblks;
#endif
}

// About what a planner reads of a pod.
struct PodLike {
  kube::Meta meta;
  Interned node;
  Interned phase;
  std::string ip;
  absl::InlinedVector<std::pair<Interned, bool>, 4> conditions;
  int64_t restarts = 0;
  bool operator==(const PodLike&) const = default;
};

kube::Uid uid(int n) {
  return kube::Uid(fmt::format("00000000-0000-4000-8000-{:012x}", n));
}

PodLike pod(std::string name, int uid_number, kube::ResourceVersion version, int owner = 0) {
  PodLike p;
  p.meta.key = {Interned("default"), std::move(name)};
  p.meta.uid = uid(uid_number);
  p.meta.resource_version = version;
  if (owner != 0) {
    p.meta.owners.push_back({.name = "owner", .uid = uid(owner), .controller = true});
  }
  return p;
}
kube::Key key(std::string name) {
  return {Interned("default"), std::move(name)};
}

struct CacheTest : testing::Test {
  Cache<PodLike> cache{kube::kinds::kPod};
  std::vector<std::string> seen;

  CacheTest() {
    cache.add_index("node", [](const PodLike& p) {
      return p.node.empty() ? std::vector<std::string>() : std::vector<std::string>{p.node.str()};
    });
    cache.add_handler([this](const PodLike* before, const PodLike* after) {
      const auto version = [](const PodLike* p) {
        return p == nullptr ? "-" : std::to_string(p->meta.resource_version);
      };
      const auto& name = (after != nullptr ? after : before)->meta.name();
      // What a handler reads must be what it is told.
      EXPECT_EQ(cache.get(key(name)).get(), after);
      seen.push_back(fmt::format("{} {}>{}", name, version(before), version(after)));
    });
  }
  std::vector<std::string> told() { return std::exchange(seen, {}); }
  std::vector<std::string> names(const std::vector<Cache<PodLike>::Ptr>& objects) {
    std::vector<std::string> out;
    for (const auto& o : objects) out.push_back(o->meta.name());
    return out;
  }
};

TEST_F(CacheTest, TellsHandlersOfAddedChangedAndGone) {
  EXPECT_TRUE(cache.update(pod("a", 1, 5)));
  auto changed = pod("a", 1, 6);
  changed.phase = Interned("Running");
  EXPECT_TRUE(cache.update(changed));
  EXPECT_TRUE(cache.remove(key("a")));
  EXPECT_FALSE(cache.remove(key("a")));
  EXPECT_THAT(told(), ElementsAre("a ->5", "a 5>6", "a 6>-"));
  EXPECT_EQ(cache.size(), 0U);
}

TEST_F(CacheTest, AnUpdateOfNothingThatIsReadIsStoredAndTellsNobody) {
  cache.update(pod("a", 1, 5));
  told();
  EXPECT_FALSE(cache.update(pod("a", 1, 6)));
  EXPECT_THAT(told(), ElementsAre());
  EXPECT_EQ(cache.get(key("a"))->meta.resource_version, 6U);
  ASSERT_NE(cache.meta(key("a")), nullptr);
  EXPECT_EQ(cache.meta(key("a"))->uid, uid(1));
}

TEST_F(CacheTest, TheSameNameWithANewUidIsGoneAndThenAdded) {
  cache.update(pod("a", 1, 5, 100));
  told();
  EXPECT_TRUE(cache.update(pod("a", 2, 9, 200)));
  EXPECT_THAT(told(), ElementsAre("a 5>-", "a ->9"));
  EXPECT_TRUE(cache.controlled_by(uid(100)).empty());
  EXPECT_THAT(names(cache.controlled_by(uid(200))), ElementsAre("a"));
}

TEST_F(CacheTest, ReplaceRemovesWhatWasNotListed) {
  cache.update(pod("a", 1, 5));
  cache.update(pod("b", 2, 5));
  cache.update(pod("c", 3, 5));
  told();
  cache.begin_replace();
  cache.update(pod("b", 2, 5));
  cache.update(pod("d", 4, 7));
  cache.finish_replace();
  EXPECT_THAT(told(), ElementsAre("d ->7", "a 5>-", "c 5>-"));
  EXPECT_THAT(names(cache.all()), ElementsAre("b", "d"));
}

TEST_F(CacheTest, AReplaceThatStartsAgainCountsOnlyTheLastTry) {
  cache.update(pod("a", 1, 5));
  cache.begin_replace();
  cache.update(pod("a", 1, 5));
  cache.begin_replace();
  cache.finish_replace();
  EXPECT_EQ(cache.size(), 0U);
}

TEST_F(CacheTest, IndexesFollowTheObjectsInTheOrderOfKeys) {
  for (const auto* name : {"c", "a", "b"}) {
    auto p = pod(name, name[0], 5, 100);
    p.node = Interned("n1");
    cache.update(p);
  }
  EXPECT_THAT(names(cache.controlled_by(uid(100))), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names(cache.indexed("node", "n1")), ElementsAre("a", "b", "c"));
  auto moved = pod("b", 'b', 6, 101);
  moved.node = Interned("n2");
  cache.update(moved);
  cache.remove(key("a"));
  EXPECT_THAT(names(cache.controlled_by(uid(100))), ElementsAre("c"));
  EXPECT_THAT(names(cache.controlled_by(uid(101))), ElementsAre("b"));
  EXPECT_THAT(names(cache.indexed("node", "n1")), ElementsAre("c"));
  EXPECT_THAT(names(cache.indexed("node", "n2")), ElementsAre("b"));
  EXPECT_TRUE(cache.indexed("no such index", "n1").empty());
}

TEST_F(CacheTest, AnIndexNeverServesAnOldState) {
  cache.update(pod("a", 1, 5, 100));
  cache.update(pod("a", 1, 6, 100));
  ASSERT_EQ(cache.controlled_by(uid(100)).size(), 1U);
  EXPECT_EQ(cache.controlled_by(uid(100))[0]->meta.resource_version, 6U);
}

TEST_F(CacheTest, ListenersHearOfProgress) {
  int heard = 0;
  cache.on_advance([&] { ++heard; });
  cache.advance(7);
  cache.advance(9);
  EXPECT_EQ(heard, 2);
  EXPECT_EQ(cache.last_version(), 9U);
}

TEST(CacheMemory, APodCostsLessThanAKilobyteWithItsIndexes) {
  constexpr int kPods = 20000;
  Cache<PodLike> cache(kube::kinds::kPod);
  cache.add_index("node", [](const PodLike& p) { return std::vector<std::string>{p.node.str()}; });
  const auto before = allocated_bytes();
  for (int i = 0; i < kPods; ++i) {
    auto p = pod(fmt::format("train-cluster-worker-group-{:05}-{:04x}", i, i), i, i, 1 + i / 8);
    std::vector<std::pair<Interned, Interned>> labels;
    for (int l = 0; l < 8; ++l) {
      labels.emplace_back(Interned(fmt::format("example.com/label-{}", l)),
                          Interned(fmt::format("value-{}", l == 0 ? i / 8 : l)));
    }
    p.meta.labels = kube::StringMap(std::move(labels));
    p.meta.owners[0].name = fmt::format("train-cluster-{}", i / 8);
    p.node = Interned(fmt::format("node-{}", i % 500));
    p.phase = Interned("Running");
    p.ip = fmt::format("10.{}.{}.{}", i >> 16, i >> 8 & 255, i & 255);
    for (const auto* c : {"PodScheduled", "Initialized", "ContainersReady", "Ready"}) {
      p.conditions.emplace_back(Interned(c), true);
    }
    cache.update(std::move(p));
  }
  const auto each = (allocated_bytes() - before) / kPods;
  RecordProperty("bytes_per_pod", std::to_string(each));
  EXPECT_LT(each, 1000U);
}

}  // namespace
}  // namespace grapnel::runtime
