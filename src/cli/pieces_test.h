// For the tests of this folder: a stream whose pieces are known.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>
#include <vector>

#include "http/client.h"

namespace grapnel::cli {

class Pieces final : public http::BodyStream {
 public:
  explicit Pieces(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  Task<Result<std::string>> read() override {
    if (next_ == pieces_.size()) co_return "";
    co_return pieces_[next_++];
  }

 private:
  std::vector<std::string> pieces_;
  size_t next_ = 0;
};

}  // namespace grapnel::cli
