// Turns bytes into a Request, within limits. Hides Beast's parser, so that only one source file
// pays for compiling it. Inside http/ only.
#pragma once

#include <memory>
#include <string>

#include "http/message.h"

namespace grapnel::http {

class RequestParser {
 public:
  explicit RequestParser(size_t max_body);
  ~RequestParser();

  enum class Progress { kNeedsMore, kDone, kRefused };
  // Each takes what it understands off the front of the buffer: first the header until kDone, then
  // the body until kDone.
  Progress parse_header(std::string& buffer);
  Progress parse_body(std::string& buffer);

  // After kRefused: the status to answer with, and why.
  int refusal() const { return refusal_; }
  const std::string& reason() const { return reason_; }

  Request take_request();
  const Headers& headers() const;
  bool keep_alive() const;
  bool is_http_1_0() const;

 private:
  class Impl;
  Progress refuse(int status, std::string reason);
  Progress check_header();

  std::unique_ptr<Impl> impl_;
  size_t header_bytes_ = 0;
  int refusal_ = 0;
  std::string reason_;
};

}  // namespace grapnel::http
