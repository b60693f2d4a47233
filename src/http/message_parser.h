// Beast's parser, with what requests and responses share: it collects headers and body. Inside
// http/ only, since including it is slow to compile.
#pragma once

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <string>
#include <string_view>

#include "http/message.h"

namespace grapnel::http {

using ErrorCode = boost::system::error_code;

constexpr uint32_t kMaxHeader = 64U << 10;

inline std::string to_std(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

template <bool is_request>
class MessageParser : public boost::beast::http::basic_parser<is_request> {
 public:
  MessageParser() { this->header_limit(kMaxHeader); }

  Headers headers;
  std::string body;

  // Takes what it understands off the front of the buffer: how much that was. need_more is no
  // error.
  size_t feed(std::string& buffer, ErrorCode& error) {
    // Beast takes the last chunk in pieces, but asserts that a later piece is not this short.
    constexpr std::string_view kLastChunk = "0\r\n\r\n";
    const bool is_too_short = this->is_header_done() && this->chunked() &&
                              buffer.starts_with('0') && buffer.size() < kLastChunk.size();
    if (buffer.empty() || is_too_short) return 0;
    const size_t used = this->put(boost::asio::buffer(buffer), error);
    buffer.erase(0, used);
    if (error == boost::beast::http::error::need_more) error = {};
    return used;
  }

 protected:
  using string_view = boost::beast::string_view;

  void on_request_impl(boost::beast::http::verb, string_view, string_view, int,
                       ErrorCode&) override {}
  void on_response_impl(int, string_view, int, ErrorCode&) override {}
  void on_field_impl(boost::beast::http::field, string_view name, string_view value,
                     ErrorCode&) override {
    if (!is_header_over_) headers.add(to_std(name), to_std(value));
  }
  void on_header_impl(ErrorCode&) override { is_header_over_ = true; }
  void on_body_init_impl(const boost::optional<uint64_t>& length, ErrorCode&) override {
    // What the other side promises is not yet a reason to take the memory.
    if (length) body.reserve(std::min<uint64_t>(*length, 64U << 10));
  }
  size_t on_body_impl(string_view piece, ErrorCode&) override {
    body.append(piece.data(), piece.size());
    return piece.size();
  }
  void on_chunk_header_impl(uint64_t, string_view, ErrorCode&) override {}
  size_t on_chunk_body_impl(uint64_t, string_view piece, ErrorCode& error) override {
    return on_body_impl(piece, error);
  }
  void on_finish_impl(ErrorCode&) override {}

 private:
  bool is_header_over_ = false;
};

}  // namespace grapnel::http
