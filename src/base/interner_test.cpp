#include "base/interner.h"

#include <absl/hash/hash.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace grapnel {
namespace {

TEST(Interner, HoldsATextOnceAndForAsLongAsSomebodyHoldsIt) {
  const size_t before = interned_count();
  {
    const Interned a("interner-test");
    Interned b("interner-test");
    EXPECT_EQ(a, b);
    EXPECT_EQ(a.view().data(), b.view().data());
    EXPECT_EQ(absl::Hash<Interned>()(a), absl::Hash<Interned>()(b));
    EXPECT_EQ(interned_count(), before + 1);

    Interned moved = std::move(b);
    b = Interned("interner-test-2");
    EXPECT_EQ(interned_count(), before + 2);
    b = moved;
    EXPECT_EQ(b, a);
    b = *&b;
    EXPECT_EQ(b, a);
    EXPECT_EQ(interned_count(), before + 1);
  }
  EXPECT_EQ(interned_count(), before);
}

TEST(Interner, TheEmptyTextCostsNothing) {
  const size_t before = interned_count();
  EXPECT_EQ(Interned(), Interned(""));
  EXPECT_TRUE(Interned("").empty());
  EXPECT_EQ(Interned().view(), "");
  EXPECT_LT(Interned(), Interned("a"));
  EXPECT_EQ(interned_count(), before);
}

TEST(Interner, KeptTextStays) {
  const std::string_view kept = keep_text("interner-test-kept");
  const size_t before = interned_count();
  {
    const Interned same("interner-test-kept");
  }
  EXPECT_EQ(interned_count(), before);
  EXPECT_EQ(kept, "interner-test-kept");
  EXPECT_EQ(keep_text("interner-test-kept").data(), kept.data());
}

TEST(Interner, GivesBackWhatThousandsHeld) {
  const size_t before = interned_count();
  {
    std::vector<Interned> many;
    for (int i = 0; i < 10'000; ++i) many.emplace_back(fmt::format("interner-test-{}", i % 5'000));
    EXPECT_EQ(interned_count(), before + 5'000);
  }
  EXPECT_EQ(interned_count(), before);
}

}  // namespace
}  // namespace grapnel
