// Linux' capabilities that container runtimes leave to a container which asks for nothing.
#pragma once

#include <linux/capability.h>

#include <cstdint>
#include <initializer_list>

namespace grapnel::local {

constexpr uint64_t capability_bits(std::initializer_list<int> capabilities) {
  uint64_t bits = 0;
  for (const int c : capabilities) bits |= uint64_t{1} << c;
  return bits;
}

inline constexpr uint64_t kDefaultCapabilities =
    capability_bits({CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID,
                     CAP_SETUID, CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_NET_RAW, CAP_SYS_CHROOT,
                     CAP_MKNOD, CAP_AUDIT_WRITE, CAP_SETFCAP});

}  // namespace grapnel::local
