#include "base/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace grapnel {
namespace {

Probe kHit("test: taken");
Probe kMissed("test: never taken");

TEST(Probe, CountsAndIsFoundByItsName) {
  kHit.hit();
  kHit.hit();
  const auto all = Probe::all();
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, &Probe::name));
  const auto hits = [&](std::string_view name) {
    const auto found = std::ranges::find(all, name, &Probe::name);
    return found == all.end() ? -1 : static_cast<int>((*found)->hits());
  };
  EXPECT_EQ(hits("test: taken"), 2);
  EXPECT_EQ(hits("test: never taken"), 0);
  EXPECT_EQ(hits("test: not there"), -1);
}

}  // namespace
}  // namespace grapnel
