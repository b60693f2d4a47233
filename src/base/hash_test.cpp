#include "base/hash.h"

#include <gtest/gtest.h>

namespace grapnel {
namespace {

// The examples of FIPS 180.
TEST(Hash, Sha1) {
  EXPECT_EQ(sha1_hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1_hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

}  // namespace
}  // namespace grapnel
