// What an operator serves beside its work: /metrics on one address, /healthz, /livez and /readyz on
// another, or all on one where both are the same.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/result.h"
#include "http/server.h"
#include "runtime/health.h"
#include "runtime/manager.h"
#include "runtime/metrics.h"

namespace grapnel::cli {

struct Address {
  std::string host;
  uint16_t port = 0;
  bool operator==(const Address&) const = default;
};
// "127.0.0.1:8080", "[::1]:8080", ":8080" for all addresses; "" and "0" for none.
Result<std::optional<Address>> parse_address(std::string_view text);

struct EndpointAddresses {
  std::optional<Address> metrics;
  std::optional<Address> health;
};

class Endpoints {
 public:
  // The manager and the metrics must outlive this.
  Endpoints(const runtime::Manager& manager, runtime::Metrics& metrics);

  // An Error when an address is taken. The ports are logged, so that one may ask for any free one.
  Result<> start(Executor executor, const EndpointAddresses& addresses);
  Task<> stop();

 private:
  Result<> serve(Executor executor, const Address& address, const runtime::Health& what,
                 std::string_view name);

  runtime::Health health_;
  runtime::Health metrics_;
  std::vector<std::unique_ptr<http::Server>> servers_;
};

}  // namespace grapnel::cli
