#include "local/builtin/job/indexes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace grapnel::local {
namespace {

TEST(Indexes, AreWrittenAsKubernetesDoes) {
  Indexes indexes;
  for (const int64_t i : {7, 3, 1, 5, 4, 9, 10}) indexes.insert(i);
  EXPECT_EQ(indexes.text(), "1,3-5,7,9,10");
  EXPECT_EQ(indexes.size(), 7);
  EXPECT_EQ(Indexes::parse("1,3-5,7,9,10", 100), indexes);
}

TEST(Indexes, RefusesOtherForms) {
  for (const auto* text : {"a", "1-", "-1", "3-1", "2,1", "1,,2", "1 2", "1-2-3"}) {
    EXPECT_FALSE(Indexes::parse(text, 100)) << text;
  }
}

TEST(Indexes, LeavesOutWhatIsBeyondTheBound) {
  EXPECT_EQ(Indexes::parse("0-9", 4)->text(), "0-3");
  EXPECT_EQ(Indexes::parse("7", 4)->text(), "");
}

RC_GTEST_PROP(Indexes, BehavesLikeASet, (const std::vector<uint8_t>& numbers)) {
  Indexes indexes;
  std::set<int64_t> model;
  for (const auto n : numbers) {
    indexes.insert(n);
    model.insert(n);
  }
  RC_ASSERT(indexes.size() == static_cast<int64_t>(model.size()));
  for (int64_t i = 0; i < 256; ++i) RC_ASSERT(indexes.contains(i) == model.contains(i));
  int64_t missing = 3;
  while (model.contains(missing)) ++missing;
  RC_ASSERT(indexes.first_missing(3) == missing);
  RC_ASSERT(Indexes::parse(indexes.text(), 256) == indexes);
}

}  // namespace
}  // namespace grapnel::local
