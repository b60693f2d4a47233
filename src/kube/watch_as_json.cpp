#include "kube/watch_as_json.h"

#include <utility>

#include "kube/types/protobuf.h"

namespace grapnel::kube {
namespace {

constexpr size_t kMostOfFrame = size_t{64} << 20;
constexpr size_t kEnough = size_t{32} << 10;  // text for its reader to go on with

class WatchAsJson final : public http::BodyStream {
 public:
  explicit WatchAsJson(std::unique_ptr<http::BodyStream> protobuf)
      : protobuf_(std::move(protobuf)) {}

  Task<Result<std::string>> read() override {
    for (;;) {
      auto lines = take_frames();
      if (!lines || !lines->empty()) co_return lines;
      auto piece = co_await protobuf_->read();
      if (!piece) co_return piece;
      if (piece->empty()) co_return end();
      rest_.erase(0, std::exchange(taken_, 0));
      if (rest_.empty()) {
        rest_ = std::move(*piece);
      } else {
        rest_ += *piece;
      }
    }
  }

 private:
  Result<std::string> end() const {
    if (taken_ == rest_.size()) return std::string();
    return fail(Reason::kTransport, "the watch ends in the middle of an event");
  }

  // Four bytes give the length of a frame. Not all frames that have arrived become text at once: a
  // burst should not be in memory three times.
  Result<std::string> take_frames() {
    std::string lines;
    std::string_view rest = std::string_view(rest_).substr(taken_);
    while (rest.size() >= 4 && lines.size() < kEnough) {
      size_t size = 0;
      for (size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(rest[i]);
      if (size > kMostOfFrame) return fail(Reason::kDecode, "an event of {} bytes", size);
      if (rest.size() - 4 < size) break;
      auto line = json_of_watch_event(rest.substr(4, size), {.managed_fields = false});
      if (!line) return line;
      lines += *line;
      lines += '\n';
      rest.remove_prefix(4 + size);
    }
    taken_ = rest_.size() - rest.size();
    return lines;
  }

  std::unique_ptr<http::BodyStream> protobuf_;
  std::string rest_;  // from taken_ on: what is still to be read, at its end a part of a frame
  size_t taken_ = 0;
};

}  // namespace

std::unique_ptr<http::BodyStream> watch_as_json(std::unique_ptr<http::BodyStream> protobuf) {
  return std::make_unique<WatchAsJson>(std::move(protobuf));
}

}  // namespace grapnel::kube
