#include "kube/exec_plugin.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace grapnel::kube {
namespace {

// What a person has to do at a browser takes its time.
constexpr Duration kPatienceWithPeople = minutes(5);
constexpr Duration kPatienceWithPrograms = minutes(1);

std::string first_lines(std::string_view text) {
  constexpr size_t kLength = 600;
  text = trim(text);
  return text.size() <= kLength ? std::string(text) : std::string(text.substr(0, kLength)) + "…";
}

bool is_one_line(std::string_view text) {
  for (const char c : text) {
    if ((c >= 0 && c < ' ') || c == 0x7f) return false;
  }
  return true;
}

class PluginToken final : public TokenSource {
 public:
  PluginToken(Executor executor, PluginOptions options)
      : options_(std::move(options)), ended_(std::move(executor)) {}

  Task<Result<std::string>> token() override {
    while (!is_fresh()) {
      if (!running_) {
        if (auto done = co_await refresh(); !done) co_return fail(std::move(done.error()));
        break;  // even when it is said to be expired already
      }
      // Everybody who waited for somebody else's run shares its result, failures included: a plugin
      // that fails for one would fail for all, one after the other.
      const uint64_t awaited = run_;
      while (running_ && run_ == awaited) co_await ended_.wait();
      if (last_run_ < awaited) continue;  // it was cancelled
      if (last_error_) co_return fail(*last_error_);
      break;
    }
    co_return credential_ ? credential_->token : "";
  }

  bool renew(std::string_view refused) override {
    // Another request may have renewed it since the refused one was sent.
    if (credential_ && credential_->token == refused) credential_.reset();
    return true;
  }

 private:
  bool is_fresh() const {
    return credential_ && (!credential_->expires || options_.clock->now() < *credential_->expires);
  }

  // Marks a run for as long as it takes, also when it is cancelled.
  struct Running {
    explicit Running(PluginToken& owner_in) : owner(owner_in) {
      owner.running_ = true;
      ++owner.run_;
    }
    ~Running() {
      owner.running_ = false;
      owner.ended_.notify_all();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    PluginToken& owner;
  };

  Task<Result<>> refresh() {
    const Running running(*this);
    auto credential = co_await run();
    last_run_ = run_;
    last_error_.reset();
    if (!credential) {
      last_error_ = credential.error();
      co_return fail(std::move(credential.error()));
    }
    credential_ = std::move(*credential);
    if (!credential_->certificate_pem.empty() && options_.on_certificate) {
      options_.on_certificate(*credential_);
    }
    co_return Result<>();
  }

  std::string input(bool interactive) const {
    JsonObject spec{{"interactive", interactive}};
    if (options_.plugin.provide_cluster_info) spec["cluster"] = options_.cluster;
    return to_text(JsonObject{{"apiVersion", options_.plugin.api_version},
                              {"kind", "ExecCredential"},
                              {"spec", std::move(spec)}});
  }

  Error described(Reason reason, std::string_view what) const {
    return {.reason = reason,
            .message = fmt::format("{}: credential plugin '{}' {}", options_.at,
                                   options_.plugin.command, what)};
  }

  Task<Result<PluginCredential>> run() {
    using enum ExecPlugin::Interactive;
    const ExecPlugin& plugin = options_.plugin;
    if (plugin.interactive == kAlways && !options_.terminal) {
      co_return fail(
          described(Reason::kUsage,
                    "must ask a person, and standard input is not a terminal; run this in "
                    "a terminal or use another way to log in"));
    }
    const bool interactive = plugin.interactive != kNever && options_.terminal;
    Command command{.arguments = {plugin.command},
                    .environment = plugin.environment,
                    .share_input = interactive,
                    .share_errors = interactive,
                    .timeout = interactive ? kPatienceWithPeople : kPatienceWithPrograms};
    command.arguments.insert(command.arguments.end(), plugin.arguments.begin(),
                             plugin.arguments.end());
    command.environment.emplace_back("KUBERNETES_EXEC_INFO", input(interactive));

    auto finished = co_await options_.run(std::move(command));
    if (!finished) {
      const std::string hint =
          plugin.install_hint.empty() ? "" : "\n" + std::string(trim(plugin.install_hint));
      co_return fail(described(finished.error().reason,
                               fmt::format("failed: {}{}", finished.error().message, hint)));
    }
    if (finished->exit_code != 0) {
      const std::string said = first_lines(finished->errors);
      co_return fail(described(Reason::kUnauthorized,
                               fmt::format("ended with code {}{}{}", finished->exit_code,
                                           said.empty() ? "" : ": ", said)));
    }
    auto credential = decode_plugin_answer(finished->output, plugin.api_version);
    if (!credential) {
      co_return fail(described(Reason::kDecode, credential.error().message));
    }
    co_return credential;
  }

  PluginOptions options_;
  Signal ended_;
  bool running_ = false;
  uint64_t run_ = 0;       // the run that goes on, or the last one that began
  uint64_t last_run_ = 0;  // the last one that came to its end
  std::optional<PluginCredential> credential_;
  std::optional<Error> last_error_;
};

}  // namespace

Result<PluginCredential> decode_plugin_answer(std::string_view text, std::string_view api_version) {
  const auto answer = parse_json(text);
  if (!answer) return fail(Reason::kDecode, "printed no JSON: {}", answer.error().message);
  if (const auto kind = string_or(find(*answer, "kind")); kind != "ExecCredential") {
    return fail(Reason::kDecode, "printed the kind '{}' instead of ExecCredential", kind);
  }
  if (const auto version = string_or(find(*answer, "apiVersion")); version != api_version) {
    return fail(Reason::kDecode, "answered in apiVersion '{}', the kubeconfig asks for '{}'",
                version, api_version);
  }
  const Json* status = find(*answer, "status");
  if (status == nullptr || !status->is_object()) {
    return fail(Reason::kDecode, "printed no status");
  }
  PluginCredential credential;
  credential.token = string_or(find(*status, "token"));
  credential.certificate_pem = string_or(find(*status, "clientCertificateData"));
  credential.key_pem = string_or(find(*status, "clientKeyData"));
  if (credential.token.empty() && credential.certificate_pem.empty()) {
    return fail(Reason::kDecode, "gave neither a token nor a certificate");
  }
  if (credential.certificate_pem.empty() != credential.key_pem.empty()) {
    return fail(Reason::kDecode, "gave a certificate without its key, or a key alone");
  }
  if (!is_one_line(credential.token)) {
    return fail(Reason::kDecode, "gave a token with a line break in it");
  }
  if (const auto expires = string_or(find(*status, "expirationTimestamp")); !expires.empty()) {
    credential.expires = parse_time(expires);
    if (!credential.expires) {
      return fail(Reason::kDecode, "gave an expirationTimestamp that is no time: '{}'", expires);
    }
  }
  return credential;
}

std::unique_ptr<TokenSource> token_from_plugin(Executor executor, PluginOptions options) {
  return std::make_unique<PluginToken>(std::move(executor), std::move(options));
}

}  // namespace grapnel::kube
