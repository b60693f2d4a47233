// Regular expressions in Go's syntax (RE2): what CRD patterns and failure-policy rules are written
// in.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace grapnel {

class Pattern {
 public:
  // An error says where the expression is wrong.
  static Result<Pattern> compile(std::string_view expression);
  // Anywhere in the text, as Go's MatchString; anchor with ^ and $.
  bool matches(std::string_view text) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// For expressions of ours that are known to be right; compiled once for each.
bool matches_pattern(std::string_view expression, std::string_view text);

}  // namespace grapnel
