// How each part of an object merges: what server-side apply must know of a kind's shape, from the
// table of a built-in kind or from a definition's schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "document/json.h"
#include "kube/types/type_info.h"
#include "local/apiserver/resource_type.h"

namespace grapnel::local {

class MergeType {
 public:
  // The root of an object of that kind.
  static MergeType of(const ResourceType& type);

  enum class List { kAtomic, kSet, kByKey };
  // For an object: merged whole?
  bool atomic() const;
  // For an object: a field by name, declared as such; a key of a map is not.
  MergeType member(std::string_view name) const;
  bool declares(std::string_view name) const;
  // A declared field that Go's types always have, so that its absence is only emptiness.
  bool always_there(std::string_view name) const;
  List list() const;
  MergeType element() const;
  // The path element of one element of a list that is a set or keyed.
  std::string path_element(const Json& value) const;

 private:
  // Exactly one of them is set; none: deduced from the value (maps merge, lists do not).
  const kube::TypeInfo* struct_ = nullptr;
  const kube::FieldInfo* field_ = nullptr;
  bool inside_ = false;  // an element of field_'s list or map, not the list or map itself
  const Json* schema_ = nullptr;
  bool resource_ = false;  // a custom resource's root: metadata has the common shape

  const kube::TypeInfo* fields() const;
  std::vector<std::string_view> keys() const;
};

}  // namespace grapnel::local
