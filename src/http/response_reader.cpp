#include "http/response_reader.h"

#include <utility>

#include "http/message_parser.h"

namespace grapnel::http {

class ResponseReader::Parser final : public MessageParser<false> {
 public:
  explicit Parser(bool has_body) {
    body_limit(boost::none);
    skip(!has_body);
  }
  int status = 0;

 private:
  void on_response_impl(int code, string_view, int, ErrorCode&) override { status = code; }
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
  } while (parser_->status < 200 && parser_->status != 101);
  parser_->eager(true);
  co_return Response{.status = parser_->status, .headers = std::move(parser_->headers)};
}

Task<Result<std::string>> ResponseReader::read_body() {
  while (parser_->body.empty() && !parser_->is_done()) {
    if (auto ok = co_await advance(); !ok) co_return fail(ok.error());
  }
  co_return std::exchange(parser_->body, {});
}

// Gives the parser what there is; when it cannot use that, reads more.
Task<Result<>> ResponseReader::advance() {
  ErrorCode error;
  const size_t used = parser_->feed(buffer_, error);
  if (error) co_return fail(Reason::kTransport, "not an HTTP response: {}", error.message());
  if (used != 0) co_return Result<>();
  if (buffer_.size() > kMaxHeader) {
    co_return fail(Reason::kTransport, "not an HTTP response: a line without end");
  }
  const auto piece = co_await stream_.read();
  if (!piece) co_return fail(piece.error());
  buffer_ += *piece;
  if (!piece->empty()) co_return Result<>();
  if (parser_->is_header_done()) parser_->put_eof(error);
  if (error || !parser_->is_done()) {
    co_return fail(Reason::kTransport, "the HTTP response ends in the middle");
  }
  co_return Result<>();
}

}  // namespace grapnel::http
