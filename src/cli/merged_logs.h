// Logs of several processes in the order of their times, a line at a time: no log is held whole.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/async.h"
#include "cli/line_reader.h"
#include "cli/process.h"
#include "http/client.h"

namespace grapnel::cli {

class MergedLogs {
 public:
  // A stream of lines that each begin with an RFC 3339 time and a space.
  void add(Process source, std::unique_ptr<http::BodyStream> stream);

  struct Line {
    Process source;
    std::string text;  // without the time
  };
  // The oldest line that is left; nothing at the end.
  Task<Result<std::optional<Line>>> next();

 private:
  struct Input {
    Process source;
    LineReader reader;
    std::optional<std::string> line = {};  // the next one, with its time
    bool over = false;
  };

  std::vector<Input> inputs_;
};

}  // namespace grapnel::cli
