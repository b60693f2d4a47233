// The metadata of an object, as caches hold it: small, with interned strings, and without
// managedFields.
#pragma once

#include <absl/container/inlined_vector.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interner.h"
#include "base/result.h"
#include "base/time.h"
#include "document/json_view.h"

namespace grapnel::kube {

// Kubernetes promises since 1.35 that these are decimal integers that can be compared; 0 means:
// none.
using ResourceVersion = uint64_t;
ResourceVersion parse_resource_version(std::string_view text);

// 16 bytes where the text is a UUID, otherwise an interned string as well.
class Uid {
 public:
  Uid() = default;
  explicit Uid(std::string_view text);
  std::string text() const;
  bool empty() const { return !is_uuid() && other_.empty(); }
  bool operator==(const Uid&) const = default;
  template <class H>
  friend H AbslHashValue(H h, const Uid& uid) {
    return H::combine(std::move(h), uid.high_, uid.low_, uid.other_);
  }

 private:
  bool is_uuid() const { return high_ != 0 || low_ != 0; }
  uint64_t high_ = 0;
  uint64_t low_ = 0;
  Interned other_;  // any other text, and the UUID of zeros
};

// Labels, or the annotations that were asked for: sorted by key, few enough for a scan.
class StringMap {
 public:
  StringMap() = default;
  explicit StringMap(std::vector<std::pair<Interned, Interned>> entries);
  std::string_view get(std::string_view key) const;  // "" when missing
  bool has(std::string_view key) const;
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  bool operator==(const StringMap&) const = default;

 private:
  std::vector<std::pair<Interned, Interned>> entries_;
};

struct OwnerReference {
  Interned api_version;
  Interned kind;
  std::string name;
  Uid uid;
  bool controller = false;
  bool operator==(const OwnerReference&) const = default;
};

// Namespace and name: what a queue and a cache know an object by.
struct Key {
  Interned ns;
  std::string name;
  bool operator==(const Key&) const = default;
  bool operator<(const Key& other) const {
    return ns == other.ns ? name < other.name : ns < other.ns;
  }
  std::string text() const;  // "ns/name", or "name" for what has no namespace
  template <class H>
  friend H AbslHashValue(H h, const Key& key) {
    return H::combine(std::move(h), key.ns, key.name);
  }
};

struct Meta {
  Key key;
  Uid uid;
  ResourceVersion resource_version = 0;
  int64_t generation = 0;
  Time created{};
  std::optional<Time> deleted;  // deletionTimestamp
  StringMap labels;
  StringMap annotations;  // only those asked for
  absl::InlinedVector<OwnerReference, 1> owners;
  absl::InlinedVector<Interned, 1> finalizers;

  std::string_view ns() const { return key.ns; }
  const std::string& name() const { return key.name; }
  bool is_being_deleted() const { return deleted.has_value(); }
  const OwnerReference* controller() const;  // nullptr: none
  bool operator==(const Meta&) const = default;
};

// Which labels and annotations a cached object keeps: those that a planner reads. Annotations can
// be large (kubectl keeps the whole object in one), and a change of what is not kept tells nobody.
struct MetaOptions {
  bool all_annotations = false;
  std::vector<std::string_view> annotations;
  bool all_labels = false;
  std::vector<std::string_view> labels;
};

// From an object's `metadata`. An object without a name is an error.
Result<Meta> decode_meta(JsonView object, const MetaOptions& options = {});

}  // namespace grapnel::kube
