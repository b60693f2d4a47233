// Digests for names and labels; not for security.
#pragma once

#include <string>
#include <string_view>

namespace grapnel {

std::string sha1_hex(std::string_view text);  // 40 digits

}  // namespace grapnel
