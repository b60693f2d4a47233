#include "base/hash.h"

#include <fmt/format.h>

#include <boost/uuid/detail/sha1.hpp>

namespace grapnel {

std::string sha1_hex(std::string_view text) {
  boost::uuids::detail::sha1 hash;
  hash.process_bytes(text.data(), text.size());
  unsigned int digest[5];
  hash.get_digest(digest);
  return fmt::format("{:08x}{:08x}{:08x}{:08x}{:08x}", digest[0], digest[1], digest[2], digest[3],
                     digest[4]);
}

}  // namespace grapnel
