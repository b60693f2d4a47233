#include "http/response_reader.h"

#include <boost/asio/buffer.hpp>
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

class ResponseReader::Parser final : public beast::http::basic_parser<false> {
 public:
  explicit Parser(bool has_body) {
    header_limit(kMaxHeader);
    body_limit(boost::none);
    skip(!has_body);
  }
  Response head;
  std::string body;

 private:
  void on_request_impl(beast::http::verb, beast::string_view, beast::string_view, int,
                       ErrorCode&) override {}
  void on_response_impl(int status, beast::string_view, int, ErrorCode&) override {
    head.status = status;
  }
  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                     ErrorCode&) override {
    if (!is_header_over_) head.headers.add(to_std(name), to_std(value));
  }
  void on_header_impl(ErrorCode&) override { is_header_over_ = true; }
  void on_body_init_impl(const boost::optional<uint64_t>&, ErrorCode&) override {}
  size_t on_body_impl(beast::string_view piece, ErrorCode&) override {
    body.append(piece.data(), piece.size());
    return piece.size();
  }
  void on_chunk_header_impl(uint64_t, beast::string_view, ErrorCode&) override {}
  size_t on_chunk_body_impl(uint64_t, beast::string_view piece, ErrorCode&) override {
    body.append(piece.data(), piece.size());
    return piece.size();
  }
  void on_finish_impl(ErrorCode&) override {}

  bool is_header_over_ = false;
};

ResponseReader::ResponseReader(ByteStream& stream, std::string_view method)
    : stream_(stream), has_body_(method != "HEAD") {}
ResponseReader::~ResponseReader() = default;

Task<Result<Response>> ResponseReader::read_head() {
  do {
    parser_ = std::make_unique<Parser>(has_body_);
    while (!parser_->is_header_done()) {
      if (auto ok = co_await advance(); !ok) co_return fail(ok.error());
    }
  } while (parser_->head.status < 200 && parser_->head.status != 101);
  parser_->eager(true);
  co_return parser_->head;
}

Task<Result<std::string>> ResponseReader::read_body() {
  while (parser_->body.empty() && !parser_->is_done()) {
    if (auto ok = co_await advance(); !ok) co_return fail(ok.error());
  }
  co_return std::exchange(parser_->body, {});
}

// Gives the parser what there is; when it cannot use that, reads more.
Task<Result<>> ResponseReader::advance() {
  // Beast takes the last chunk in pieces, but asserts that a later piece is not this short.
  const bool too_short = parser_->is_header_done() && parser_->chunked() &&
                         buffer_.starts_with('0') && buffer_.size() < kLastChunk.size();
  if (!buffer_.empty() && !too_short) {
    ErrorCode error;
    const size_t used = parser_->put(boost::asio::buffer(buffer_), error);
    buffer_.erase(0, used);
    if (error && error != beast::http::error::need_more) {
      co_return fail(Reason::kTransport, "not an HTTP response: {}", error.message());
    }
    if (used != 0) co_return Result<>();
    if (buffer_.size() > kMaxHeader) {
      co_return fail(Reason::kTransport, "not an HTTP response: a line without end");
    }
  }
  const auto piece = co_await stream_.read();
  if (!piece) co_return fail(piece.error());
  buffer_ += *piece;
  if (!piece->empty()) co_return Result<>();
  ErrorCode error;
  if (parser_->is_header_done()) parser_->put_eof(error);
  if (error || !parser_->is_done()) {
    co_return fail(Reason::kTransport, "the HTTP response ends in the middle");
  }
  co_return Result<>();
}

}  // namespace grapnel::http
