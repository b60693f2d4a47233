// Strings that occur in thousands of objects (label keys, namespaces, node names), stored once.
//
// An Interned is a pointer: copying and comparing it costs nothing, and it stays valid for the life
// of the program. Intern only strings that repeat; names and uids do not.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace grapnel {

class Interned {
 public:
  Interned();  // the empty string
  explicit Interned(std::string_view text);

  std::string_view view() const { return *text_; }
  operator std::string_view() const { return *text_; }
  const std::string& str() const { return *text_; }
  bool empty() const { return text_->empty(); }

  bool operator==(const Interned& other) const { return text_ == other.text_; }
  // By text, not by address: the order must be the same in every run.
  bool operator<(const Interned& other) const { return *text_ < *other.text_; }
  template <class H>
  friend H AbslHashValue(H h, const Interned& i) {
    return H::combine(std::move(h), i.text_);
  }

 private:
  const std::string* text_;
};

size_t interned_count();

}  // namespace grapnel
