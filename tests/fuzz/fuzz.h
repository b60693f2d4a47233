// What fuzz targets share: the input as text, and a check that ends the program.
//
// A target does more than wait for a crash: it states what must hold of everything a parser
// accepts, most often that it can be written and read back.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace grapnel::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// The text up to a separator, which is taken off `rest` with it.
inline std::string_view take_part(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

}  // namespace grapnel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
