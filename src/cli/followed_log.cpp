#include "cli/followed_log.h"

namespace grapnel::cli {

FollowedLog::FollowedLog(kube::Client& client, kube::Where pod, kube::LogOptions options)
    : client_(client), pod_(std::move(pod)), options_(std::move(options)) {
  options_.follow = true;
  options_.timestamps = true;
}

Task<Result<>> FollowedLog::open() {
  position_.reopen();
  if (const auto since = position_.since()) {
    options_.since_time = since;
    options_.tail_lines.reset();
  }
  auto stream = co_await client_.logs(pod_, options_);
  if (!stream) co_return fail(std::move(stream.error()));
  lines_.emplace(std::move(*stream));
  was_open_ = true;
  co_return Result<>();
}

Task<Result<std::optional<std::string>>> FollowedLog::next() {
  if (!lines_) {
    if (auto opened = co_await open(); !opened) co_return fail(std::move(opened.error()));
  }
  for (;;) {
    auto line = co_await lines_->next();
    if (!line || !*line) {
      lines_.reset();
      co_return line;
    }
    if (const auto text = position_.take(**line)) co_return std::string(*text);
  }
}

}  // namespace grapnel::cli
