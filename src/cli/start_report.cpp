#include "cli/start_report.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "base/strings.h"
#include "document/json.h"

namespace grapnel::cli {

StartReporter::StartReporter(int fd) {
  if (fd < 0) return;
  pipe_ = Fd(fd);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // pods must not hold it open
}

void StartReporter::say(const std::string& what, const std::string& text) {
  if (!pipe_) return;
  const std::string line = to_text(JsonObject{{what, text}}) + "\n";
  // Whoever started us may have gone: that is no reason to end.
  (void)::send(pipe_.get(), line.data(), line.size(), MSG_NOSIGNAL);
}

void StartReporter::warn(const std::string& text) {
  say("warning", text);
}

void StartReporter::ready() {
  say("ready", "");
  pipe_.reset();
}

void StartReporter::failed(const std::string& why) {
  say("failed", why);
  pipe_.reset();
}

Result<StartReport> read_start_report(int fd, Duration longest) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  StartReport report;
  std::string rest;
  std::array<char, 4096> piece{};
  while (!report.ready && report.failure.empty()) {
    const auto left =
        duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return fail(Reason::kTimeout, "no answer");
    pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, static_cast<int>(left)) <= 0) continue;
    const ssize_t count = ::read(fd, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    rest.append(piece.data(), static_cast<size_t>(count));
    for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
      const auto line = parse_json(rest.substr(0, end));
      rest.erase(0, end + 1);
      if (!line) continue;
      if (const Json* warning = find(*line, "warning")) {
        report.warnings.emplace_back(string_or(warning));
      }
      if (find(*line, "ready") != nullptr) report.ready = true;
      if (const Json* failed = find(*line, "failed")) report.failure = string_or(failed);
    }
  }
  return report;
}

}  // namespace grapnel::cli
