#include "cli/ignore_rules.h"

#include <gtest/gtest.h>

namespace grapnel::cli {
namespace {

struct Row {
  const char* rules;
  const char* path;
  bool ignored;
  bool is_folder = false;
};

// Each row was asked of git (`git check-ignore`), too.
TEST(IgnoreRules, DecideAsGitDoes) {
  for (const auto& [rules, path, ignored, is_folder] : {
           Row{"*.pyc", "a.pyc", true},
           Row{"*.pyc", "deep/er/a.pyc", true},
           Row{"*.pyc", "a.py", false},
           Row{"# *.py", "a.py", false},
           Row{"\\#a", "#a", true},
           Row{"data", "data", true},
           Row{"data", "a/data", true},
           Row{"data/", "data", false},
           Row{"data/", "data", true, true},
           Row{"/data", "data", true},
           Row{"/data", "a/data", false},
           Row{"a/data", "a/data", true},
           Row{"a/data", "b/a/data", false},
           Row{"a/*", "a/b", true},
           Row{"*.log\n!keep.log", "keep.log", false},
           Row{"*.log\n!keep.log", "lose.log", true},
           Row{"!keep.log\n*.log", "keep.log", true},
           Row{"**/x", "a/b/x", true},
           Row{"**/x", "x", true},
           Row{"a/**/x", "a/x", true},
           Row{"a/**/x", "a/b/c/x", true},
           Row{"a/**", "a/b/c", true},
           Row{"a/**", "a", false, true},
           Row{"?.txt", "a.txt", true},
           Row{"?.txt", "ab.txt", false},
           Row{"[a-c].txt", "b.txt", true},
           Row{"[!a-c].txt", "b.txt", false},
           Row{"[!a-c].txt", "d.txt", true},
           Row{"[].txt", "].txt", false},
           Row{"a.b", "axb", false},
           Row{"name  ", "name", true},
           Row{"name\\ ", "name ", true},
           Row{"name\r", "name", true},
           Row{"", "a", false},
           Row{"/", "a", false},
           Row{"a+(b)", "a+(b)", true},
       }) {
    IgnoreRules all;
    all.add(rules, "");
    EXPECT_EQ(all.ignores(path, is_folder), ignored) << "'" << rules << "' on " << path;
  }
}

TEST(IgnoreRules, OfAFolderHoldBelowIt) {
  IgnoreRules all;
  all.add("*.bin", "");
  all.add("!keep.bin\n/only-here", "a.b");
  EXPECT_TRUE(all.ignores("keep.bin", false));
  EXPECT_FALSE(all.ignores("a.b/keep.bin", false));
  EXPECT_FALSE(all.ignores("a.b/c/keep.bin", false));
  EXPECT_TRUE(all.ignores("a.b/only-here", false));
  EXPECT_FALSE(all.ignores("only-here", false));
  EXPECT_FALSE(all.ignores("axb/only-here", false));
}

}  // namespace
}  // namespace grapnel::cli
