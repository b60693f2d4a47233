// The parameters of lists and watches that select a state of the store.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "local/apiserver/api.h"

namespace grapnel::local {

// "" and "0" are 0.
Answer<uint64_t> parse_version(std::string_view text);

struct ListOptions {
  size_t limit = 0;
  std::string after;           // from the continue token
  uint64_t exact_version = 0;  // 0: the newest

  static Answer<ListOptions> parse(const Call& call, uint64_t newest);
};

// Opaque to clients: the snapshot's version and the last key that was shown.
// Any word but "false" and "0" means yes.
bool parse_flag(std::string_view text);

std::string continue_token(uint64_t version, std::string_view last_key, std::string_view ns);

}  // namespace grapnel::local
