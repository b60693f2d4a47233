// How to make the namespaces of a pod or of the cluster.
#pragma once

#include <cstdint>
#include <string_view>

namespace grapnel::local::shim {

struct Config {
  const char* directory = nullptr;
  const char* hostname = "";
  const char* domain = "(none)";
  uint64_t shm_bytes = 0;
  std::string_view fields;  // all of them, for those that come more than once
  int user_fd = -1;
  int network_fd = -1;
  uint64_t namespaces = 0;
  int report_fd = -1;
  int starter = 0;  // the process that started the launcher
  const char* veth = nullptr;
  const char* bridge = nullptr;
  const char* address = nullptr;
  unsigned prefix = 0;
  const char* gateway = nullptr;
  const char* dns_address = nullptr;
  unsigned outer_user = 0;
  unsigned outer_group = 0;
};

}  // namespace grapnel::local::shim
