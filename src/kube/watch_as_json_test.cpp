#include "kube/watch_as_json.h"

#include <gmock/gmock.h>

#include "kube/fake_test.h"
#include "kube/types/protobuf.h"
#include "kube/types/wire.h"

namespace grapnel::kube {
namespace {

using testing::HasSubstr;

std::string frame(std::string_view type, std::string_view name) {
  const auto pod = encode_protobuf(
      JsonObject{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", JsonObject{{"name", name}}}});
  std::string object;
  append_bytes(object, 1, *pod);
  std::string event;
  append_bytes(event, 1, type);
  append_bytes(event, 2, object);
  const auto size = static_cast<uint32_t>(event.size());
  std::string out;
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(size >> shift);
  return out + event;
}

std::string line(std::string_view type, std::string_view name) {
  return fmt::format(
      R"({{"type":"{}","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}"}}}}}})"
      "\n",
      type, name);
}

class PiecesStream final : public http::BodyStream {
 public:
  PiecesStream(std::string text, size_t piece) : text_(std::move(text)), piece_(piece) {}
  Task<Result<std::string>> read() override {
    std::string out = text_.substr(0, piece_);
    text_.erase(0, out.size());
    co_return out;
  }

 private:
  std::string text_;
  size_t piece_;
};

struct WatchAsJson : LoopTest {
  // All lines, and the error at the end if there is one.
  std::pair<std::string, std::string> read(std::string bytes, size_t piece) {
    const auto stream = watch_as_json(std::make_unique<PiecesStream>(std::move(bytes), piece));
    std::string all;
    for (;;) {
      const auto got = run(stream->read());
      if (!got) return {all, got.error().message};
      if (got->empty()) return {all, ""};
      EXPECT_LT(got->size(), 40 << 10);
      all += *got;
    }
  }
};

TEST_F(WatchAsJson, LinesComeWholeHoweverTheBytesCome) {
  const std::string bytes = frame("ADDED", "a") + frame("DELETED", "b") + frame("MODIFIED", "c");
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    const auto [lines, error] = read(bytes, piece);
    EXPECT_EQ(lines, line("ADDED", "a") + line("DELETED", "b") + line("MODIFIED", "c"));
    EXPECT_EQ(error, "");
  }
}

TEST_F(WatchAsJson, ABurstBecomesTextBitByBit) {
  std::string bytes;
  std::string all;
  for (int i = 0; i < 5000; ++i) {
    bytes += frame("ADDED", std::to_string(i));
    all += line("ADDED", std::to_string(i));
  }
  for (const size_t piece : {bytes.size(), bytes.size() / 3}) {
    const auto [lines, error] = read(bytes, piece);
    EXPECT_EQ(lines, all);
    EXPECT_EQ(error, "");
  }
}

TEST_F(WatchAsJson, AnEventCutShortIsAnError) {
  const std::string bytes = frame("ADDED", "a") + frame("ADDED", "b");
  const auto [lines, error] = read(bytes.substr(0, bytes.size() - 1), 7);
  EXPECT_EQ(lines, line("ADDED", "a"));
  EXPECT_THAT(error, HasSubstr("in the middle of an event"));
}

TEST_F(WatchAsJson, WhatIsNoEventIsAnError) {
  EXPECT_THAT(read("{\"type\":\"ADDED\"}\n", 99).second, HasSubstr("an event of"));
  EXPECT_THAT(read(std::string("\0\0\0\1x", 5), 99).second, HasSubstr("protobuf"));
}

}  // namespace
}  // namespace grapnel::kube
