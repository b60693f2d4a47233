#include "cli/table.h"

#include <gtest/gtest.h>

namespace grapnel::cli {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"NAME", "PHASE", "AGE"});
  table.add({"a-long-name", "Running", "5s"});
  table.add({"b", "", "3m12s"});
  EXPECT_EQ(table.text(),
            "NAME          PHASE     AGE\n"
            "a-long-name   Running   5s\n"
            "b                       3m12s\n");
}

TEST(Table, LinesEndWithoutSpaces) {
  Table table({"NAME", "MESSAGE"});
  table.add({"a", ""});
  EXPECT_EQ(table.text(), "NAME   MESSAGE\na\n");
}

TEST(Table, WidthIsCountedInCharacters) {
  Table table({"N", "M"});
  table.add({"äöü", "x"});
  table.add({"abc", "y"});
  EXPECT_EQ(table.text(), "N     M\näöü   x\nabc   y\n");
}

}  // namespace
}  // namespace grapnel::cli
