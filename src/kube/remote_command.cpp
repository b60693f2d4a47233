#include "kube/remote_command.h"

#include <charconv>

#include "document/json.h"
#include "kube/exec_channels.h"

namespace grapnel::kube {
namespace {

std::string message(ExecChannel channel, std::string_view data) {
  return std::string(1, static_cast<char>(channel)).append(data);
}

}  // namespace

Result<int> exit_code_of(std::string_view text) {
  const auto status = parse_json(text);
  if (!status) return fail(Reason::kDecode, "the end of a command is no Status: {}", text);
  if (string_or(find(*status, "status")) == "Success") return 0;
  if (string_or(find(*status, "reason")) == "NonZeroExitCode") {
    const Json* causes = at(*status, "details", "causes");
    if (causes != nullptr && causes->is_array()) {
      for (const Json& cause : causes->as_array()) {
        if (string_or(find(cause, "reason")) != "ExitCode") continue;
        const auto digits = string_or(find(cause, "message"));
        int code = 0;
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), code);
        if (error == std::errc() && end == digits.data() + digits.size()) return code;
      }
    }
  }
  const auto why = string_or(find(*status, "message"));
  return fail(reason_from_string(string_or(find(*status, "reason"))), "{}",
              why.empty() ? "the command could not be run" : why);
}

Task<Result<RemoteCommand::Event>> RemoteCommand::read() {
  for (;;) {
    auto got = co_await socket_->read();
    if (!got) co_return fail(std::move(got.error()));
    if (got->closed) {
      co_return fail(Reason::kTransport, "the connection ended before the command did");
    }
    if (got->data.empty()) continue;
    const auto channel = static_cast<ExecChannel>(got->data[0]);
    std::string data = got->data.substr(1);
    if (channel == ExecChannel::kStatus) {
      const auto code = exit_code_of(data);
      if (!code) co_return fail(code.error());
      co_return Event{.exit_code = *code};
    }
    if (data.empty()) continue;  // servers open each stream with an empty message
    if (channel == ExecChannel::kOutput) co_return Event{.output = std::move(data)};
    if (channel == ExecChannel::kError) co_return Event{.errors = std::move(data)};
  }
}

Task<Result<>> RemoteCommand::write_input(std::string_view data) {
  const std::string text = message(ExecChannel::kInput, data);
  co_return co_await socket_->write(text);
}

Task<Result<>> RemoteCommand::close_input() {
  const std::string text =
      message(ExecChannel::kClose, std::string(1, static_cast<char>(ExecChannel::kInput)));
  co_return co_await socket_->write(text);
}

Task<Result<>> RemoteCommand::resize(int width, int height) {
  const std::string text =
      message(ExecChannel::kResize, to_text(JsonObject{{"Width", width}, {"Height", height}}));
  co_return co_await socket_->write(text);
}

}  // namespace grapnel::kube
