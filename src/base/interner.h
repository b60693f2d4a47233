// Strings that occur in thousands of objects (label keys, namespaces, node names), held once and
// for as long as somebody holds them.
//
// An Interned is a counted pointer: copying and comparing it costs almost nothing. A view of its
// text is good for as long as an Interned of that text exists. Intern only what repeats: names and
// uids do not. The count is not atomic: like everything else here it belongs to one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace grapnel {

class Interned {
 public:
  Interned() = default;  // the empty string
  explicit Interned(std::string_view text);
  Interned(const Interned& other) noexcept : entry_(other.entry_) {
    if (entry_ != nullptr) ++entry_->holders;
  }
  Interned(Interned&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  Interned& operator=(Interned other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~Interned() {
    if (entry_ != nullptr && --entry_->holders == 0) drop(entry_);
  }

  std::string_view view() const {
    return entry_ != nullptr ? std::string_view(entry_->text) : std::string_view("");
  }
  operator std::string_view() const { return view(); }
  std::string str() const { return std::string(view()); }
  bool empty() const { return entry_ == nullptr; }

  bool operator==(const Interned& other) const { return entry_ == other.entry_; }
  // By text, not by address: the order must be the same in every run.
  bool operator<(const Interned& other) const { return view() < other.view(); }
  template <class H>
  friend H AbslHashValue(H h, const Interned& i) {
    return H::combine(std::move(h), i.entry_);
  }

  struct Entry {
    std::string text;
    mutable size_t holders = 0;
  };

 private:
  friend std::string_view keep_text(std::string_view text);
  static void drop(const Entry* entry);

  const Entry* entry_ = nullptr;  // nullptr: the empty string
};

// Text that is kept for the life of the program: for names that are asked for again and again, and
// are few.
std::string_view keep_text(std::string_view text);

// How many strings are held.
size_t interned_count();

}  // namespace grapnel
