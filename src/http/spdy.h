// The part of SPDY/3.1 that Kubernetes' port-forward speaks, as bytes in and bytes out, for both
// ends: streams are opened by the client, flow control is not used.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace grapnel::http {

struct SpdyOpened {
  uint32_t stream = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  bool finished = false;                       // nothing will follow on it
};
struct SpdyData {
  uint32_t stream = 0;
  std::string data;
  bool finished = false;
};
struct SpdyReset {
  uint32_t stream = 0;
};
struct SpdyPing {
  uint32_t id = 0;
};
struct SpdyGoAway {};
using SpdyFrame = std::variant<SpdyOpened, SpdyData, SpdyReset, SpdyPing, SpdyGoAway>;

class SpdyReader {
 public:
  SpdyReader();
  ~SpdyReader();

  void feed(std::string_view bytes) { buffer_ += bytes; }
  // The next whole frame; nothing until more bytes have come. Frames of no meaning to us are passed
  // over. After an error the connection is lost: headers are compressed as one stream.
  Result<std::optional<SpdyFrame>> next();

 private:
  class Inflater;
  Result<std::optional<SpdyFrame>> control(uint16_t type, uint8_t flags, std::string_view payload);
  Result<std::map<std::string, std::string>> headers(std::string_view compressed);

  std::string buffer_;
  std::unique_ptr<Inflater> inflater_;
};

// One for each connection.
class SpdyWriter {
 public:
  SpdyWriter();
  ~SpdyWriter();

  // A client's streams have odd numbers that rise.
  std::string open(uint32_t stream, const std::map<std::string, std::string>& headers);
  std::string reply(uint32_t stream);  // accepts it
  std::string data(uint32_t stream, std::string_view data, bool finished = false) const;
  std::string reset(uint32_t stream) const;  // gives it up
  std::string ping(uint32_t id) const;

 private:
  class Deflater;
  std::unique_ptr<Deflater> deflater_;
};

}  // namespace grapnel::http
