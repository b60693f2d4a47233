// All kinds that the server knows, found by the names in a path.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "local/apiserver/resource_type.h"

namespace grapnel::local {

// The built-in kinds, in the order discovery lists them.
std::vector<TypePtr> builtin_types();

class Registry {
 public:
  Registry();

  TypePtr find(std::string_view group, std::string_view version, std::string_view plural) const;
  TypePtr find_kind(std::string_view group, std::string_view version, std::string_view kind) const;
  // Any version that serves the resource.
  TypePtr find_resource(std::string_view group, std::string_view plural) const;
  // All kinds of a group and version, in order.
  std::vector<TypePtr> of(std::string_view group, std::string_view version) const;
  bool has_group(std::string_view group) const;
  bool is_builtin_group(std::string_view group) const;

  struct Group {
    std::string name;
    std::vector<std::string> versions;  // the preferred one first
  };
  std::vector<Group> groups() const;  // the core group is the first
  const std::vector<TypePtr>& all() const { return types_; }

  // Replaces all kinds of a CustomResourceDefinition ("jobsets.jobset.x-k8s.io").
  void set_custom(const std::string& definition, std::vector<TypePtr> types);
  // Rises with each change: what discovery and OpenAPI documents are cached by.
  uint64_t revision() const { return revision_; }

 private:
  void rebuild();
  std::vector<TypePtr> builtin_;
  std::map<std::string, std::vector<TypePtr>> custom_;
  std::vector<TypePtr> types_;
  std::map<std::string, TypePtr, std::less<>> by_path_;  // group/version/plural
  uint64_t revision_ = 0;
};

// v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else by name.
bool version_before(std::string_view a, std::string_view b);

}  // namespace grapnel::local
