#include "local/builtin/naming.h"

#include <fmt/format.h>

namespace grapnel::local {

uint64_t hash_of(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

std::string letters_of(uint64_t hash, int count) {
  static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += kLetters[hash % kLetters.size()];
    hash /= kLetters.size();
  }
  return text;
}

std::string ChildNames::next(std::string_view stem, std::string_view identity) {
  constexpr int kLetters = 5;
  // A Kubernetes name has at most 63 letters; the ending must stay.
  constexpr size_t kLongest = 63 - kLetters - 1;
  int64_t& incarnation = tried_[{std::string(stem), std::string(identity)}];
  for (;;) {
    std::string name =
        fmt::format("{}-{}", stem.substr(0, kLongest),
                    letters_of(hash_of(fmt::format("{}/{}", identity, incarnation++)), kLetters));
    if (taken_.insert(name).second) return name;
  }
}

}  // namespace grapnel::local
