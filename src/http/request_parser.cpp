#include "http/request_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

namespace grapnel::http {
namespace {

namespace beast = boost::beast;
using ErrorCode = boost::system::error_code;

constexpr uint32_t kMaxHeader = 64U << 10;
constexpr std::string_view kLastChunk = "0\r\n\r\n";

std::string to_std(beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

class RequestParser::Impl final : public beast::http::basic_parser<true> {
 public:
  explicit Impl(size_t max_body) {
    header_limit(kMaxHeader);
    body_limit(max_body);
  }
  Request request;
  int version = 11;

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int http_version, ErrorCode&) override {
    request.method = to_std(method);
    request.target = to_std(target);
    version = http_version;
  }
  void on_response_impl(int, beast::string_view, int, ErrorCode&) override {}
  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                     ErrorCode&) override {
    if (!is_header_over_) request.headers.add(to_std(name), to_std(value));
  }
  void on_header_impl(ErrorCode&) override { is_header_over_ = true; }
  void on_body_init_impl(const boost::optional<uint64_t>& length, ErrorCode&) override {
    // What the client promises is not yet a reason to take the memory.
    if (length) request.body.reserve(std::min<uint64_t>(*length, 64U << 10));
  }
  size_t on_body_impl(beast::string_view piece, ErrorCode&) override {
    request.body.append(piece.data(), piece.size());
    return piece.size();
  }
  void on_chunk_header_impl(uint64_t, beast::string_view, ErrorCode&) override {}
  size_t on_chunk_body_impl(uint64_t, beast::string_view piece, ErrorCode&) override {
    request.body.append(piece.data(), piece.size());
    return piece.size();
  }
  void on_finish_impl(ErrorCode&) override {}

  bool is_header_over_ = false;
};

RequestParser::RequestParser(size_t max_body) : impl_(std::make_unique<Impl>(max_body)) {}
RequestParser::~RequestParser() = default;

Request RequestParser::take_request() {
  return std::move(impl_->request);
}
const Headers& RequestParser::headers() const {
  return impl_->request.headers;
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
  const size_t used = impl_->put(boost::asio::buffer(buffer), error_code);
  buffer.erase(0, used);
  header_bytes_ += used;
  // Beast's limit holds for a piece, not for all of it.
  if (header_bytes_ > kMaxHeader) return refuse(431, "the header is too long");
  if (!error_code && impl_->is_header_done()) return check_header();
  if (!error_code || error_code == error::need_more) {
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
    // Beast takes the last chunk in pieces, but asserts that a later piece is not this short.
    if (impl_->chunked() && buffer.starts_with('0') && buffer.size() < kLastChunk.size()) {
      return Progress::kNeedsMore;
    }
    ErrorCode error_code;
    const size_t used = impl_->put(boost::asio::buffer(buffer), error_code);
    buffer.erase(0, used);
    if (error_code == error::body_limit) return refuse(413, "the body is too long");
    if (error_code && error_code != error::need_more) {
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
