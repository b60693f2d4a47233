// Names of children, as a function of identity: a repeated create is a conflict, not a second
// child.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace grapnel::local {

// FNV-1a: short names need spread, not secrecy.
uint64_t hash_of(std::string_view text);
// This many of the letters that Kubernetes itself uses for such endings: no vowels, so no words.
std::string letters_of(uint64_t hash, int count);

// Names for new children, many at a time.
class ChildNames {
 public:
  // Of a child that exists: it is not given to another.
  void take(std::string_view name) { taken_.emplace(name); }
  // "stem-x7k2p", the first that is not taken, and takes it; shortened so that it is a name. The
  // same identity gives the same names in the same order.
  std::string next(std::string_view stem, std::string_view identity);

 private:
  std::set<std::string, std::less<>> taken_;
  std::map<std::pair<std::string, std::string>, int64_t> tried_;  // by stem and identity
};

}  // namespace grapnel::local
