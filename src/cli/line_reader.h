// A stream of text, line by line: no log is held whole. What is left at the end is a line, too.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "base/result.h"
#include "http/client.h"

namespace grapnel::cli {

class LineReader {
 public:
  explicit LineReader(std::unique_ptr<http::BodyStream> stream) : stream_(std::move(stream)) {}

  // Without its end; nothing when there is none left.
  Task<Result<std::optional<std::string>>> next();

 private:
  std::unique_ptr<http::BodyStream> stream_;
  std::string rest_;   // read, not yet taken
  size_t begin_ = 0;   // of what is left in it
  bool over_ = false;  // nothing more will come
};

}  // namespace grapnel::cli
