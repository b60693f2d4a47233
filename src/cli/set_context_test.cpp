#include "cli/set_context.h"

#include <gtest/gtest.h>

namespace grapnel::cli {
namespace {

TEST(SetContext, ChangesOneLineAndNothingElse) {
  const std::string before =
      "# mine\napiVersion: v1\ncurrent-context: old # the old one\ncontexts: []\n";
  EXPECT_EQ(*with_current_context(before, "new"),
            "# mine\napiVersion: v1\ncurrent-context: \"new\"\ncontexts: []\n");
}

TEST(SetContext, IsAddedWhereThereWasNone) {
  EXPECT_EQ(*with_current_context("apiVersion: v1", "a:b"),
            "apiVersion: v1\ncurrent-context: \"a:b\"\n");
}

TEST(SetContext, OfJson) {
  const auto changed = with_current_context(R"({"apiVersion":"v1","current-context":"a"})", "b");
  ASSERT_TRUE(changed);
  EXPECT_NE(changed->find(R"("current-context": "b")"), std::string::npos) << *changed;
}

TEST(SetContext, WhatCannotBeChangedIsRefused) {
  EXPECT_FALSE(with_current_context("{apiVersion: v1, current-context: a}", "b"));
  EXPECT_FALSE(with_current_context("--- [", "b"));
}

}  // namespace
}  // namespace grapnel::cli
