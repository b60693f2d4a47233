#include "runtime/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace grapnel::runtime {
namespace {

http::Response text(int status, std::string body, std::string type = "text/plain; charset=utf-8") {
  return {.status = status,
          .headers = {{"Content-Type", std::move(type)}, {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(body)};
}

}  // namespace

http::Response Health::answer(const http::Request& request) const {
  if (request.method != "GET" && request.method != "HEAD") return text(405, "only GET\n");
  const auto target = http::parse_target(request.target);
  if (target.path == "/healthz" || target.path == "/livez") {
    return run(live_, {}, target.path.substr(1), target);
  }
  if (target.path == "/readyz") {
    std::vector<std::string> notes;
    for (const auto& ask : notes_) std::ranges::move(ask(), std::back_inserter(notes));
    return run(ready_, notes, "readyz", target);
  }
  if (target.path == "/metrics" && metrics_) {
    return text(200, metrics_(), "text/plain; version=0.0.4; charset=utf-8");
  }
  return text(404, "not found\n");
}

// In the words of Kubernetes' own servers. A failure is told in full, also without ?verbose:
// whoever looks at an unready pod wants to know why.
http::Response Health::run(const Checks& checks, const std::vector<std::string>& notes,
                           std::string_view name, const http::Target& target) {
  std::string lines = "[+]ping ok\n";
  bool ok = true;
  for (const auto& [check, f] : checks) {
    if (const auto fault = f()) {
      ok = false;
      lines += fmt::format("[-]{} failed: {}\n", check, *fault);
    } else {
      lines += fmt::format("[+]{} ok\n", check);
    }
  }
  for (const auto& note : notes) lines += fmt::format("[+]{}\n", note);
  if (!ok) return text(500, fmt::format("{}{} check failed\n", lines, name));
  if (target.has("verbose")) return text(200, fmt::format("{}{} check passed\n", lines, name));
  return text(200, "ok");
}

http::Handler Health::handler() const {
  return [this](http::Exchange& exchange) -> Task<> {
    return [](const Health& self, http::Exchange& e) -> Task<> {
      co_await e.respond(self.answer(e.request()));
    }(*this, exchange);
  };
}

}  // namespace grapnel::runtime
