#include "base/interner.h"

#include <absl/container/node_hash_set.h>
#include <absl/strings/string_view.h>

namespace grapnel {
namespace {

// Debian builds Abseil with a string_view of its own.
absl::string_view text_of(std::string_view text) {
  return {text.data(), text.size()};
}

struct Hash {
  using is_transparent = void;
  size_t operator()(absl::string_view text) const { return absl::Hash<absl::string_view>()(text); }
  size_t operator()(const Interned::Entry& entry) const { return (*this)(text_of(entry.text)); }
};

struct Equal {
  using is_transparent = void;
  static absl::string_view text(absl::string_view text) { return text; }
  static absl::string_view text(const Interned::Entry& entry) { return text_of(entry.text); }
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return text(a) == text(b);
  }
};

using Table = absl::node_hash_set<Interned::Entry, Hash, Equal>;

Table& table() {
  static Table* const instance = new Table();  // never destroyed: statics hold Interned, too
  return *instance;
}

}  // namespace

Interned::Interned(std::string_view text) {
  if (text.empty()) return;
  auto& strings = table();
  auto found = strings.find(text_of(text));
  if (found == strings.end()) found = strings.insert(Entry{std::string(text)}).first;
  entry_ = &*found;
  ++entry_->holders;
}

void Interned::drop(const Entry* entry) {
  table().erase(table().find(*entry));
}

std::string_view keep_text(std::string_view text) {
  const Interned kept(text);
  if (!kept.empty()) ++kept.entry_->holders;  // one that never goes
  return kept.view();
}

size_t interned_count() {
  return table().size();
}

}  // namespace grapnel
