#include "cli/merged_logs.h"

namespace grapnel::cli {
namespace {

// Times of one form compare as texts do up to their fraction, whose trailing zeros Go leaves out:
// "…:05.1Z" is before "…:05.12Z" although 'Z' comes after '2'.
std::string_view comparable(std::string_view line) {
  const auto time = line.substr(0, line.find(' '));
  return time.ends_with('Z') ? time.substr(0, time.size() - 1) : time;
}

}  // namespace

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
    if (oldest == nullptr || comparable(*input.line) < comparable(*oldest->line)) oldest = &input;
  }
  if (oldest == nullptr) co_return std::optional<Line>();
  const std::string line = *std::exchange(oldest->line, std::nullopt);
  const size_t space = line.find(' ');
  co_return Line{oldest->source, space == std::string::npos ? line : line.substr(space + 1)};
}

}  // namespace grapnel::cli
