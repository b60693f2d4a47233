#include "document/pattern.h"

#include <re2/re2.h>

#include <map>

namespace grapnel {

struct Pattern::Impl {
  explicit Impl(std::string_view expression)
      : regex(re2::StringPiece(expression.data(), expression.size()), RE2::Quiet) {}
  RE2 regex;
};

Result<Pattern> Pattern::compile(std::string_view expression) {
  auto impl = std::make_shared<const Impl>(expression);
  if (!impl->regex.ok()) {
    return fail(Reason::kInvalid, "{} in regular expression `{}`", impl->regex.error(), expression);
  }
  Pattern pattern;
  pattern.impl_ = std::move(impl);
  return pattern;
}

bool Pattern::matches(std::string_view text) const {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), impl_->regex);
}

bool matches_pattern(std::string_view expression, std::string_view text) {
  static std::map<std::string, Result<Pattern>, std::less<>> compiled;
  auto found = compiled.find(expression);
  if (found == compiled.end()) {
    found = compiled.emplace(expression, Pattern::compile(expression)).first;
  }
  return found->second && found->second->matches(text);
}

}  // namespace grapnel
