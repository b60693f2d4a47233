// Names of children, as a function of identity: a repeated create is a conflict, not a second
// child.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace grapnel::local {

// FNV-1a: short names need spread, not secrecy.
uint64_t hash_of(std::string_view text);
// This many of the letters that Kubernetes itself uses for such endings: no vowels, so no words.
std::string letters_of(uint64_t hash, int count);

// "stem-x7k2p": the first name that is not taken, shortened to the length of a name. The same
// identity gives the same names in the same order.
std::string child_name(std::string_view stem, std::string_view identity,
                       const std::set<std::string_view>& taken);

}  // namespace grapnel::local
