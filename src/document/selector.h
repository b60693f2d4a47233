// Label and field selectors: parsed once, matched often.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "document/json.h"

namespace grapnel {

struct Requirement {
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist, kGreaterThan, kLessThan };
  std::string key;
  Operator op = Operator::kExists;
  std::vector<std::string> values;
  bool operator==(const Requirement&) const = default;
};

// Gives the value of a label or field; nothing when it is not set.
using Lookup = std::function<std::optional<std::string_view>(std::string_view key)>;

class Selector {
 public:
  // "app=ray,tier in (a,b),!old,count>3"; empty text selects everything.
  static Result<Selector> parse_labels(std::string_view text);
  // "metadata.name=x,status.phase!=Running"; only =, == and != are allowed. A field that is not set
  // has the value "".
  static Result<Selector> parse_fields(std::string_view text);
  // metav1.LabelSelector: {matchLabels, matchExpressions}. An empty one selects everything, null
  // nothing.
  static Result<Selector> from_label_selector(const Json& selector);
  // A Service's or ReplicationController's plain map.
  static Selector from_map(const JsonObject& labels);
  // Matches no object at all.
  static Selector nothing();

  bool empty() const { return requirements_.empty(); }  // it selects everything
  bool matches(const Lookup& lookup) const;
  bool matches(const JsonObject* labels) const;
  const std::vector<Requirement>& requirements() const { return requirements_; }
  std::string text() const;  // as a query parameter takes it

 private:
  bool of_fields_ = false;
  std::vector<Requirement> requirements_;
};

}  // namespace grapnel
