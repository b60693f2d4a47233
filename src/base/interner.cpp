#include "base/interner.h"

#include <absl/container/node_hash_set.h>

namespace grapnel {
namespace {

using Table = absl::node_hash_set<std::string>;

Table& table() {
  static Table* const instance = new Table();  // never destroyed: Interned outlives statics
  return *instance;
}

const std::string* intern(std::string_view text) {
  auto& strings = table();
  // Debian builds Abseil with a string_view of its own.
  auto found = strings.find(absl::string_view(text.data(), text.size()));
  if (found == strings.end()) found = strings.emplace(text).first;
  return &*found;
}

}  // namespace

Interned::Interned() {
  static const std::string* const empty = intern("");
  text_ = empty;
}
Interned::Interned(std::string_view text) : text_(intern(text)) {}

size_t interned_count() {
  return table().size();
}

}  // namespace grapnel
