// Cluster addresses and node ports of Services: each belongs to one Service as long as it exists.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "document/json.h"
#include "local/apiserver/status.h"

namespace grapnel::local {

class ServiceAddresses {
 public:
  // "10.96.0.0/16": the first address is the API server's own.
  Result<> set_range(std::string_view range);
  std::string api_address() const;

  // Fills spec.clusterIP, clusterIPs and nodePorts of a Service that is created or changed; what it
  // took stays taken until release().
  void allocate(JsonObject& service, const Json* old, FieldErrors& errors);
  void release(const Json& service);
  // At the start: what a stored Service holds.
  void occupy(const Json& service);

 private:
  std::optional<std::string> next_address();
  std::optional<int64_t> next_port();
  uint32_t base_ = 0x0a600000;  // 10.96.0.0
  uint32_t size_ = 1U << 16;
  uint32_t cursor_ = 0;
  int64_t port_cursor_ = 0;
  absl::flat_hash_set<uint32_t> addresses_;
  absl::flat_hash_set<int64_t> ports_;
};

}  // namespace grapnel::local
