#include "http/run_handler.h"

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include "base/log.h"

namespace grapnel::http {
namespace asio = boost::asio;

Task<> run_handler(const Handler& handler, Exchange& exchange) {
  std::string problem;
  bool aborted = false;
  try {
    co_await handler(exchange);
  } catch (const std::exception& error) {
    aborted = is_cancellation(std::current_exception());
    problem = error.what();
  }
  const auto state = co_await asio::this_coro::cancellation_state;
  if (aborted && state.cancelled() != asio::cancellation_type::none) {
    throw boost::system::system_error(asio::error::operation_aborted);
  }
  if (problem.empty()) co_return;
  log_error("a request handler ended with an exception", {{"what", problem},
                                                          {"method", exchange.request().method},
                                                          {"target", exchange.request().target}});
}

}  // namespace grapnel::http
