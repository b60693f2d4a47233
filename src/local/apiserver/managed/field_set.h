// A set of fields of an object, in the form of managedFields (FieldsV1): who set what.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "document/json.h"

namespace grapnel::local {

// A tree of path elements: "f:name" for a field, k:{"name":"c"} for an element of a keyed list,
// v:"x" for a value of a set. A node is a member when the set holds that very path.
class FieldSet {
 public:
  static FieldSet from_json(const Json& fields);
  Json to_json() const;

  bool member = false;
  std::map<std::string, FieldSet, std::less<>> children;

  FieldSet& at(std::string_view element);
  const FieldSet* find(std::string_view element) const;
  bool empty() const { return !member && children.empty(); }
  bool operator==(const FieldSet&) const = default;

  void add(const FieldSet& other);           // union
  void remove(const FieldSet& other);        // difference
  void remove_below(const FieldSet& other);  // difference, with all that is below
  FieldSet intersection(const FieldSet& other) const;
  // Each path, as error messages write it: .spec.containers[name="c"].image
  void for_each(const std::function<void(const std::string& path)>& f) const;

 private:
  void walk(const std::string& prefix, const std::function<void(const std::string&)>& f) const;
};

}  // namespace grapnel::local
