#include "base/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

namespace grapnel {
namespace {

TEST(Quantity, ParsesAndWritesCanonicalText) {
  struct Row {
    std::string_view text;
    std::string_view canonical;  // "" when it is no quantity
    int64_t milli = 0;
  };
  const Row rows[] = {
      {"0", "0", 0},
      {"500m", "500m", 500},
      {"0.5", "500m", 500},
      {".5", "500m", 500},
      {"5.", "5", 5000},
      {"+3", "3", 3000},
      {"-1500m", "-1500m", -1500},
      {"2", "2", 2000},
      {"1000", "1k", 1'000'000},
      {"1000m", "1", 1000},
      {"2Gi", "2Gi", 2'147'483'648'000},
      {"1.5Gi", "1536Mi", 1'610'612'736'000},
      {"1024Mi", "1Gi", 1'073'741'824'000},
      {"0.5Ki", "512", 512'000},
      {"1025Ki", "1025Ki", 1'049'600'000},
      {"1e3", "1e3", 1'000'000},
      {"1E3", "1e3", 1'000'000},
      {"1e-3", "1e-3", 1},
      {"1e1", "10", 10'000},
      {"12E", "9223372036854775807", std::numeric_limits<int64_t>::max()},
      {"1e999999999999", "9223372036854775807", std::numeric_limits<int64_t>::max()},
      {"0e999999999999", "0", 0},
      {"1e-999999999999", "1e-9", 1},
      {"-1e-40", "-1e-9", -1},
      {"0.0000000001", "1n", 1},
      {"0.1Ki", "102400m", 102'400},
      {"100n", "100n", 1},
      {"1u", "1u", 1},
      {"1K", ""},
      {"1ki", ""},
      {"Ki", ""},
      {"", ""},
      {"-", ""},
      {".", ""},
      {"1.2.3", ""},
      {"1 Gi", ""},
      {"1e", ""},
      {"1e+", ""},
      {"1e1.5", ""},
      {"0x10", ""},
      {"five", ""},
  };
  for (const Row& row : rows) {
    const auto quantity = Quantity::parse(row.text);
    ASSERT_EQ(quantity.has_value(), !row.canonical.empty()) << row.text;
    if (!quantity) continue;
    EXPECT_EQ(quantity->text(), row.canonical) << row.text;
    EXPECT_EQ(quantity->milli(), row.milli) << row.text;
  }
}

TEST(Quantity, RoundsUpToUnits) {
  EXPECT_EQ(Quantity::parse("1500m")->units(), 2);
  EXPECT_EQ(Quantity::parse("-1500m")->units(), -2);
  EXPECT_EQ(Quantity::parse("1n")->units(), 1);
  EXPECT_EQ(Quantity::from_units(std::numeric_limits<int64_t>::min()).units(),
            std::numeric_limits<int64_t>::min());
}

TEST(Quantity, Reckons) {
  const auto of = [](std::string_view text) { return *Quantity::parse(text); };
  EXPECT_EQ((of("500m") + of("1")).text(), "1500m");
  EXPECT_EQ((of("1Gi") - of("512Mi")).text(), "512Mi");
  EXPECT_EQ((Quantity() + of("2Gi")).text(), "2Gi");
  EXPECT_EQ((of("250m") * 4).text(), "1");
  EXPECT_LT(of("1000M"), of("1Gi"));
  EXPECT_EQ(of("1024Ki"), of("1Mi"));
  const Quantity huge = of("9E");
  EXPECT_EQ((huge * std::numeric_limits<int64_t>::max()).units(),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ((huge * std::numeric_limits<int64_t>::min()).units(),
            std::numeric_limits<int64_t>::min());
  Quantity sum = huge;
  for (int i = 0; i < 200; ++i) sum = sum + sum;
  EXPECT_EQ(sum.units(), std::numeric_limits<int64_t>::max());
}

TEST(Quantity, TextReadsBackAsTheSameValue) {
  EXPECT_TRUE(rc::check([](int64_t milli) {
    const Quantity quantity = Quantity::from_milli(milli);
    RC_ASSERT(Quantity::parse(quantity.text()) == quantity);
    RC_ASSERT(quantity.milli() == milli);
  }));
}

}  // namespace
}  // namespace grapnel
