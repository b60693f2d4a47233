// What the store keeps of an object: its bytes, and beside them what every list and watch needs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "document/json_view.h"

namespace grapnel::local {

// Immutable once made: readers, watchers and the commit thread share it.
struct Object {
  uint64_t version = 0;  // its resourceVersion, which also stands in the bytes
  uint64_t created = 0;  // the version that created it: its identity in the database
  std::string key;       // "namespace/name", or "name" where there is no namespace
  std::string json;      // compact
  std::string labels;    // "key\0value\0…", so that selectors need no parse

  std::string_view ns() const;
  std::string_view name() const;
  std::optional<std::string_view> label(std::string_view wanted) const;
};
using ObjectPtr = std::shared_ptr<const Object>;

std::string key_of(std::string_view ns, std::string_view name);
// metadata.labels in the form of Object::labels.
std::string pack_labels(JsonView object);

}  // namespace grapnel::local
