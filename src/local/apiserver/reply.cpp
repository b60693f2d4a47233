#include "local/apiserver/reply.h"

#include <fmt/format.h>

namespace grapnel::local {

void add_warning(http::Response& response, std::string_view text) {
  // One line, quoted as RFC 7234 asks.
  std::string safe;
  for (const char c : text) {
    if (c == '"' || c == '\\') safe.push_back('\\');
    safe.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
  response.headers.add("Warning", fmt::format("299 - \"{}\"", safe));
}

Task<> respond_error(http::Exchange& exchange, ApiError error) {
  http::Response response{.status = error.code, .body = to_text(to_status(error))};
  response.headers.set("content-type", "application/json");
  response.headers.set("cache-control", "no-cache, private");
  if (error.retry_after > 0) response.headers.set("retry-after", std::to_string(error.retry_after));
  (void)co_await exchange.respond(std::move(response));
}

}  // namespace grapnel::local
