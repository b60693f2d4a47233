#include "http/request_parser.h"

#include <algorithm>
#include <utility>

#include "http/message_parser.h"

namespace grapnel::http {

namespace beast = boost::beast;

class RequestParser::Impl final : public MessageParser<true> {
 public:
  explicit Impl(size_t max_body) { body_limit(max_body); }
  std::string method;
  std::string target;
  int version = 11;

 private:
  void on_request_impl(beast::http::verb, string_view method_text, string_view target_text,
                       int http_version, ErrorCode&) override {
    method = to_std(method_text);
    target = to_std(target_text);
    version = http_version;
  }
};

RequestParser::RequestParser(size_t max_body) : impl_(std::make_unique<Impl>(max_body)) {}
RequestParser::~RequestParser() = default;

Request RequestParser::take_request() {
  return {.method = std::move(impl_->method),
          .target = std::move(impl_->target),
          .headers = std::move(impl_->headers),
          .body = std::move(impl_->body)};
}
const Headers& RequestParser::headers() const {
  return impl_->headers;
}
bool RequestParser::keep_alive() const {
  return impl_->keep_alive();
}
bool RequestParser::is_http_1_0() const {
  return impl_->version < 11;
}

RequestParser::Progress RequestParser::refuse(int status, std::string reason) {
  refusal_ = status;
  reason_ = std::move(reason);
  return Progress::kRefused;
}

RequestParser::Progress RequestParser::parse_header(std::string& buffer) {
  using beast::http::error;
  ErrorCode error_code;
  const size_t used = impl_->feed(buffer, error_code);
  header_bytes_ += used;
  // Beast's limit holds for a piece, not for all of it.
  if (header_bytes_ > kMaxHeader) return refuse(431, "the header is too long");
  if (!error_code && impl_->is_header_done()) return check_header();
  if (!error_code) {
    return header_bytes_ + buffer.size() > kMaxHeader ? refuse(431, "the header is too long")
                                                      : Progress::kNeedsMore;
  }
  if (error_code == error::header_limit) return refuse(431, "the header is too long");
  if (error_code == error::body_limit) return refuse(413, "the body is too long");
  if (error_code == error::bad_version) return refuse(505, "only HTTP/1.0 and 1.1 are spoken");
  return refuse(400, "not an HTTP request: " + error_code.message());
}

RequestParser::Progress RequestParser::check_header() {
  const auto hosts = std::ranges::count_if(headers(), [](const auto& field) {
    const Headers one{field};
    return one.has("Host");
  });
  if (hosts > 1 || (hosts == 0 && !is_http_1_0())) return refuse(400, "one Host header is needed");
  const std::string_view expect = headers().get("Expect");
  if (!expect.empty() &&
      !beast::iequals(beast::string_view(expect.data(), expect.size()), "100-continue")) {
    return refuse(417, "only 100-continue can be expected");
  }
  return Progress::kDone;
}

RequestParser::Progress RequestParser::parse_body(std::string& buffer) {
  using beast::http::error;
  impl_->eager(true);
  while (!impl_->is_done()) {
    ErrorCode error_code;
    const size_t used = impl_->feed(buffer, error_code);
    if (error_code == error::body_limit) return refuse(413, "the body is too long");
    if (error_code) {
      return refuse(400, "not an HTTP body: " + error_code.message());
    }
    if (impl_->is_done()) break;
    if (used != 0 && !buffer.empty()) continue;
    // A chunk's own line, or its trailers.
    if (buffer.size() > kMaxHeader)
      return refuse(400, "not an HTTP body: no end of a chunk's line");
    return Progress::kNeedsMore;
  }
  return Progress::kDone;
}

}  // namespace grapnel::http
