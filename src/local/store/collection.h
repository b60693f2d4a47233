// One resource's objects, ordered by key, and its newest changes, ordered by version.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_set.h>

#include <deque>
#include <string>

#include "local/store/store.h"

namespace grapnel::local {

struct Collection {
  explicit Collection(const Executor& executor) : changed(executor), settled(executor) {}

  absl::btree_map<std::string, ObjectPtr> objects;
  std::deque<Change> changes;
  uint64_t dropped = 0;                      // how many changes are no longer in the deque
  uint64_t dropped_version = 0;              // the version of the last one dropped
  absl::flat_hash_set<std::string> pending;  // keys with a write under way
  Signal changed;
  Signal settled;
};

// The state of a collection at an older version: what differs from now, by key; nullptr for an
// object that did not exist then.
absl::btree_map<std::string, ObjectPtr> differences_at(const Collection& collection,
                                                       uint64_t version);

}  // namespace grapnel::local
