#include "cli/commands/operator_endpoints.h"

#include <charconv>

#include "base/log.h"

namespace grapnel::cli {
namespace {

constexpr Duration kLastAnswers = seconds(1);

}  // namespace

Result<std::optional<Address>> parse_address(std::string_view text) {
  if (text.empty() || text == "0") return std::optional<Address>();
  const auto colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  const std::string_view digits =
      colon == std::string_view::npos ? "" : std::string_view(text).substr(colon + 1);
  Address out;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() ||
      (!bracketed && host.find(':') != std::string_view::npos)) {
    return fail(Reason::kUsage, "'{}' is not HOST:PORT", text);
  }
  if (bracketed) host = host.substr(1, host.size() - 2);
  out.host = host.empty() ? "0.0.0.0" : std::string(host);
  return out;
}

Endpoints::Endpoints(const runtime::Manager& manager, runtime::Metrics& metrics) {
  manager.add_checks(health_);
  metrics_.set_metrics([&metrics] { return metrics.text(); });
}

Result<> Endpoints::start(Executor executor, const EndpointAddresses& addresses) {
  const bool together =
      addresses.health && addresses.health == addresses.metrics && addresses.health->port != 0;
  if (together) {
    health_.set_metrics([this] { return metrics_.answer({.target = "/metrics"}).body; });
  } else if (addresses.metrics) {
    const auto served = serve(executor, *addresses.metrics, metrics_, "metrics");
    if (!served) return served;
  }
  if (!addresses.health) return {};
  return serve(executor, *addresses.health, health_, together ? "health and metrics" : "health");
}

Result<> Endpoints::serve(Executor executor, const Address& address, const runtime::Health& what,
                          std::string_view name) {
  auto server =
      http::start_server(executor, {.address = address.host, .port = address.port}, what.handler());
  if (!server) return fail(std::move(server.error()));
  log_info("serving", {{"what", name}, {"host", address.host}, {"port", (*server)->port()}});
  servers_.push_back(std::move(*server));
  return {};
}

Task<> Endpoints::stop() {
  for (const auto& server : servers_) co_await server->stop(kLastAnswers);
}

}  // namespace grapnel::cli
