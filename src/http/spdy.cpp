#include "http/spdy.h"

#include <zlib.h>

#include <array>

namespace grapnel::http {
namespace {

constexpr size_t kHead = 8;
constexpr size_t kLongestFrame = size_t{1} << 20;
constexpr size_t kLongestHeaders = size_t{64} << 10;
constexpr uint16_t kVersion = 3;

enum Type : uint16_t { kSynStream = 1, kSynReply = 2, kRstStream = 3, kPing = 6, kGoAway = 7 };
constexpr uint8_t kFin = 1;

// What both ends of a connection compress headers with, from the protocol's draft: words with their
// length before them, then a text.
constexpr std::array<std::string_view, 65> kWords{"options",
                                                  "head",
                                                  "post",
                                                  "put",
                                                  "delete",
                                                  "trace",
                                                  "accept",
                                                  "accept-charset",
                                                  "accept-encoding",
                                                  "accept-language",
                                                  "accept-ranges",
                                                  "age",
                                                  "allow",
                                                  "authorization",
                                                  "cache-control",
                                                  "connection",
                                                  "content-base",
                                                  "content-encoding",
                                                  "content-language",
                                                  "content-length",
                                                  "content-location",
                                                  "content-md5",
                                                  "content-range",
                                                  "content-type",
                                                  "date",
                                                  "etag",
                                                  "expect",
                                                  "expires",
                                                  "from",
                                                  "host",
                                                  "if-match",
                                                  "if-modified-since",
                                                  "if-none-match",
                                                  "if-range",
                                                  "if-unmodified-since",
                                                  "last-modified",
                                                  "location",
                                                  "max-forwards",
                                                  "pragma",
                                                  "proxy-authenticate",
                                                  "proxy-authorization",
                                                  "range",
                                                  "referer",
                                                  "retry-after",
                                                  "server",
                                                  "te",
                                                  "trailer",
                                                  "transfer-encoding",
                                                  "upgrade",
                                                  "user-agent",
                                                  "vary",
                                                  "via",
                                                  "warning",
                                                  "www-authenticate",
                                                  "method",
                                                  "get",
                                                  "status",
                                                  "200 OK",
                                                  "version",
                                                  "HTTP/1.1",
                                                  "url",
                                                  "public",
                                                  "set-cookie",
                                                  "keep-alive",
                                                  "origin"};
constexpr std::string_view kText =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
    "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

void put32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}
uint32_t get32(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

const std::string& dictionary() {
  static const std::string text = [] {
    std::string out;
    for (const auto word : kWords) {
      put32(out, static_cast<uint32_t>(word.size()));
      out += word;
    }
    return out.append(kText);
  }();
  return text;
}

Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib does not write to it
}

std::string frame(uint32_t first, uint8_t flags, std::string_view payload) {
  std::string out;
  put32(out, first);
  put32(out, uint32_t{flags} << 24 | static_cast<uint32_t>(payload.size()));
  return out.append(payload);
}
std::string control_frame(Type type, std::string_view payload) {
  return frame(0x80000000U | uint32_t{kVersion} << 16 | type, 0, payload);
}

}  // namespace

class SpdyReader::Inflater {
 public:
  Inflater() { ::inflateInit(&stream_); }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Result<std::string> add(std::string_view compressed) {
    std::string out;
    stream_.next_in = bytes_of(compressed);
    stream_.avail_in = static_cast<uInt>(compressed.size());
    for (;;) {
      std::array<char, 4096> piece;
      stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream_.avail_out = piece.size();
      int code = ::inflate(&stream_, Z_SYNC_FLUSH);
      if (code == Z_NEED_DICT) {
        code = ::inflateSetDictionary(&stream_, bytes_of(dictionary()),
                                      static_cast<uInt>(dictionary().size()));
      }
      if (code != Z_OK && code != Z_BUF_ERROR && code != Z_STREAM_END) {
        return fail(Reason::kBadRequest, "SPDY: headers cannot be inflated");
      }
      out.append(piece.data(), piece.size() - stream_.avail_out);
      if (out.size() > kLongestHeaders) return fail(Reason::kBadRequest, "SPDY: headers too long");
      if (stream_.avail_in == 0 && stream_.avail_out > 0) return out;
      if (code == Z_BUF_ERROR || code == Z_STREAM_END) return out;
    }
  }

 private:
  z_stream stream_{};
};

SpdyReader::SpdyReader() : inflater_(std::make_unique<Inflater>()) {}
SpdyReader::~SpdyReader() = default;

Result<std::optional<SpdyFrame>> SpdyReader::next() {
  for (;;) {
    if (buffer_.size() < kHead) return std::nullopt;
    const uint32_t first = get32(buffer_);
    const auto flags = static_cast<uint8_t>(buffer_[4]);
    const size_t length = get32(std::string_view(buffer_).substr(4)) & 0xFFFFFFU;
    if (length > kLongestFrame) return fail(Reason::kBadRequest, "SPDY: a frame is too long");
    if (buffer_.size() < kHead + length) return std::nullopt;
    const std::string payload = buffer_.substr(kHead, length);
    buffer_.erase(0, kHead + length);
    if ((first & 0x80000000U) == 0) {
      return SpdyData{.stream = first, .data = payload, .finished = (flags & kFin) != 0};
    }
    if ((first >> 16 & 0x7FFFU) != kVersion) {
      return fail(Reason::kBadRequest, "SPDY: only version 3 is spoken here");
    }
    auto known = control(static_cast<uint16_t>(first), flags, payload);
    if (!known || *known) return known;
  }
}

Result<std::optional<SpdyFrame>> SpdyReader::control(uint16_t type, uint8_t flags,
                                                     std::string_view payload) {
  constexpr size_t kBeforeHeaders = 10;  // two streams, priority, slot
  if (type == kGoAway) return SpdyGoAway{};
  if (type != kSynStream && type != kRstStream && type != kPing) return std::nullopt;
  if (payload.size() < (type == kSynStream ? kBeforeHeaders : 4U)) {
    return fail(Reason::kBadRequest, "SPDY: a frame is too short");
  }
  const uint32_t number = get32(payload);
  if (type == kPing) return SpdyPing{number};
  if (type == kRstStream) return SpdyReset{number & 0x7FFFFFFFU};
  auto read = headers(payload.substr(kBeforeHeaders));
  if (!read) return fail(std::move(read.error()));
  return SpdyOpened{
      .stream = number & 0x7FFFFFFFU, .headers = std::move(*read), .finished = (flags & kFin) != 0};
}

Result<std::map<std::string, std::string>> SpdyReader::headers(std::string_view compressed) {
  const auto text = inflater_->add(compressed);
  if (!text) return fail(text.error());
  std::string_view rest = *text;
  const auto number = [&rest]() -> std::optional<uint32_t> {
    if (rest.size() < 4) return std::nullopt;
    const uint32_t value = get32(rest);
    rest.remove_prefix(4);
    return value;
  };
  const auto word = [&]() -> std::optional<std::string> {
    const auto size = number();
    if (!size || *size > rest.size()) return std::nullopt;
    std::string out(rest.substr(0, *size));
    rest.remove_prefix(*size);
    return out;
  };
  std::map<std::string, std::string> out;
  const auto count = number();
  for (uint32_t i = 0; count && i < *count; ++i) {
    auto name = word();
    auto value = word();
    if (!name || !value) return fail(Reason::kBadRequest, "SPDY: headers are cut off");
    out[std::move(*name)] = std::move(*value);
  }
  return out;
}

class SpdyWriter::Deflater {
 public:
  Deflater() { ::deflateInit(&stream_, Z_DEFAULT_COMPRESSION); }
  ~Deflater() { ::deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  // The dictionary need not be used.
  std::string add(std::string_view text) {
    std::string out;
    stream_.next_in = bytes_of(text);
    stream_.avail_in = static_cast<uInt>(text.size());
    do {
      std::array<char, 256> piece;
      stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream_.avail_out = piece.size();
      ::deflate(&stream_, Z_SYNC_FLUSH);
      out.append(piece.data(), piece.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
    return out;
  }

 private:
  z_stream stream_{};
};

SpdyWriter::SpdyWriter() : deflater_(std::make_unique<Deflater>()) {}
SpdyWriter::~SpdyWriter() = default;

std::string SpdyWriter::open(uint32_t stream, const std::map<std::string, std::string>& headers) {
  std::string payload;
  put32(payload, stream);
  put32(payload, 0);     // belongs to no other stream
  payload.append(2, 0);  // priority, slot
  std::string block;
  put32(block, static_cast<uint32_t>(headers.size()));
  for (const auto& [name, value] : headers) {
    put32(block, static_cast<uint32_t>(name.size()));
    block += name;
    put32(block, static_cast<uint32_t>(value.size()));
    block += value;
  }
  return control_frame(kSynStream, payload + deflater_->add(block));
}
std::string SpdyWriter::reply(uint32_t stream) {
  std::string payload;
  put32(payload, stream);
  std::string no_headers;
  put32(no_headers, 0);
  return control_frame(kSynReply, payload + deflater_->add(no_headers));
}
std::string SpdyWriter::data(uint32_t stream, std::string_view data, bool finished) const {
  return frame(stream, finished ? kFin : 0, data);
}
std::string SpdyWriter::reset(uint32_t stream) const {
  constexpr uint32_t kCancel = 5;
  std::string payload;
  put32(payload, stream);
  put32(payload, kCancel);
  return control_frame(kRstStream, payload);
}
std::string SpdyWriter::ping(uint32_t id) const {
  std::string payload;
  put32(payload, id);
  return control_frame(kPing, payload);
}

}  // namespace grapnel::http
