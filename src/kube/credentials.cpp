#include "kube/credentials.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"

namespace grapnel::kube {
namespace {

class FileToken final : public TokenSource {
 public:
  FileToken(std::string path, Clock& clock) : path_(std::move(path)), clock_(clock) {}

  Task<Result<std::string>> token() override {
    if (token_.empty() || clock_.instant() >= next_read_) {
      if (auto done = read(); !done && token_.empty()) co_return fail(std::move(done.error()));
    }
    co_return token_;
  }

  bool renew(std::string_view refused) override {
    if (token_ == refused) (void)read();  // a failure leaves the old one
    return token_ != refused;
  }

 private:
  Result<> read() {
    next_read_ = clock_.instant() + minutes(1);
    auto text = read_file(path_, 1UL << 20);
    if (!text) return complain(text.error().message);
    const std::string_view found = trim(*text);
    if (found.empty()) return complain("it is empty");
    if (found.find_first_of(std::string_view("\n\r\0", 3)) != found.npos) {
      return complain("it has more than one line");
    }
    token_ = found;
    return {};
  }

  Result<> complain(std::string_view why) {
    Error error{.reason = Reason::kUsage,
                .message = fmt::format("cannot read a token from {}: {}", path_, why)};
    if (!token_.empty()) log_warning("keeping the old token", {{"error", error.message}});
    return fail(std::move(error));
  }

  std::string path_;
  Clock& clock_;
  std::string token_;
  Instant next_read_{};
};

class HeaderCredentials final : public Credentials {
 public:
  HeaderCredentials(http::Headers headers, std::unique_ptr<TokenSource> source)
      : headers_(std::move(headers)), source_(std::move(source)) {}

  Task<Result<>> authorize(http::Request& request) override {
    for (const auto& [name, value] : headers_) request.headers.add(name, value);
    if (!source_) co_return Result<>();
    auto token = co_await source_->token();
    if (!token) co_return fail(std::move(token.error()));
    if (!token->empty()) request.headers.set("Authorization", "Bearer " + *token);
    co_return Result<>();
  }

  bool renew(std::string_view refused) override {
    constexpr std::string_view kScheme = "Bearer ";
    if (refused.starts_with(kScheme)) refused.remove_prefix(kScheme.size());
    return source_ && source_->renew(refused);
  }

 private:
  http::Headers headers_;
  std::unique_ptr<TokenSource> source_;
};

}  // namespace

std::unique_ptr<TokenSource> token_from_file(std::string path, Clock& clock) {
  return std::make_unique<FileToken>(std::move(path), clock);
}

std::shared_ptr<Credentials> make_credentials(http::Headers headers,
                                              std::unique_ptr<TokenSource> source) {
  return std::make_shared<HeaderCredentials>(std::move(headers), std::move(source));
}

}  // namespace grapnel::kube
