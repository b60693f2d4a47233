// Reads the answer to one request from a stream that somebody else opened and wrote to.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "http/message.h"
#include "http/server.h"

namespace grapnel::http {

class ResponseReader {
 public:
  // The stream outlives it. Its end may be the answer's: no second request can follow.
  ResponseReader(ByteStream& stream, std::string_view method);
  ~ResponseReader();

  // Status and headers; interim answers are passed over.
  Task<Result<Response>> read_head();
  // The next piece of the body, without its chunks; empty at the end.
  Task<Result<std::string>> read_body();
  // After a 101: what came with the head and belongs to the new protocol.
  std::string take_rest() { return std::move(buffer_); }

 private:
  class Parser;
  Task<Result<>> advance();

  ByteStream& stream_;
  bool has_body_;
  std::string buffer_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace grapnel::http
