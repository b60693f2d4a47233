// Which objects of a collection a list, a watch or a deletecollection selects.
#pragma once

#include <string>

#include "document/selector.h"
#include "local/apiserver/api.h"

namespace grapnel::local {

class Selection {
 public:
  static Answer<Selection> parse(const Call& call);

  bool matches(const Object& object) const;
  bool selects_all() const { return labels_.empty() && fields_.empty(); }
  // "namespace/", or "" for all.
  const std::string& prefix() const { return prefix_; }

 private:
  TypePtr type_;
  std::string prefix_;
  Selector labels_;
  Selector fields_;
  bool fields_need_body_ = false;
};

}  // namespace grapnel::local
