// The log of one pod as it is written, line by line: each line once, also where the connection was
// cut in between.
#pragma once

#include <optional>
#include <string>

#include "base/async.h"
#include "cli/line_reader.h"
#include "cli/log_position.h"
#include "kube/client.h"

namespace grapnel::cli {

class FollowedLog {
 public:
  FollowedLog(kube::Client& client, kube::Where pod, kube::LogOptions options);

  // The next line; nothing at the end of the stream, an Error when it broke or did not open. After
  // both the next call opens it again, where it was.
  Task<Result<std::optional<std::string>>> next();
  bool is_open() const { return lines_.has_value(); }
  bool was_open() const { return was_open_; }  // at least once

 private:
  Task<Result<>> open();

  kube::Client& client_;
  kube::Where pod_;
  kube::LogOptions options_;
  LogPosition position_;
  std::optional<LineReader> lines_;
  bool was_open_ = false;
};

}  // namespace grapnel::cli
