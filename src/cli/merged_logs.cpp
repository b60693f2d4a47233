#include "cli/merged_logs.h"

#include "cli/log_position.h"

namespace grapnel::cli {
void MergedLogs::add(Process source, std::unique_ptr<http::BodyStream> stream) {
  inputs_.push_back({.source = std::move(source), .reader = LineReader(std::move(stream))});
}

Task<Result<std::optional<MergedLogs::Line>>> MergedLogs::next() {
  Input* oldest = nullptr;
  for (Input& input : inputs_) {
    if (!input.line && !input.over) {
      auto line = co_await input.reader.next();
      if (!line) co_return fail(std::move(line.error()));
      input.line = std::move(*line);
      input.over = !input.line;
    }
    if (!input.line) continue;
    if (oldest == nullptr || is_before(*input.line, *oldest->line)) oldest = &input;
  }
  if (oldest == nullptr) co_return std::optional<Line>();
  const std::string line = *std::exchange(oldest->line, std::nullopt);
  const size_t space = line.find(' ');
  co_return Line{oldest->source, space == std::string::npos ? line : line.substr(space + 1)};
}

}  // namespace grapnel::cli
