// Rows in columns, as kubectl prints them.
#pragma once

#include <string>
#include <vector>

namespace grapnel::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Three spaces between columns, none at the ends of lines.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace grapnel::cli
