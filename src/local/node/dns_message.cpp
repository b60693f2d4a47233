#include "local/node/dns_message.h"

#include <algorithm>

namespace grapnel::local::dns {
namespace {

constexpr size_t kHeader = 12;
constexpr size_t kLongestName = 255;
constexpr size_t kOurLargest = 1232;  // what crosses any path in one piece

void put16(std::string& out, size_t value) {
  out += static_cast<char>(value >> 8 & 255);
  out += static_cast<char>(value & 255);
}

void put32(std::string& out, uint32_t value) {
  put16(out, value >> 16);
  put16(out, value & 0xffff);
}

class Cursor {
 public:
  explicit Cursor(std::string_view packet) : packet_(packet) {}
  size_t at() const { return at_; }
  bool ok() const { return ok_; }

  uint16_t take16() {
    if (!ok_ || packet_.size() - at_ < 2) {
      ok_ = false;
      return 0;
    }
    const auto value = static_cast<uint16_t>(byte(at_) << 8 | byte(at_ + 1));
    at_ += 2;
    return value;
  }
  uint32_t take32() {
    const uint32_t high = take16();
    return high << 16 | take16();
  }
  std::string_view take(size_t size) {
    if (!ok_ || packet_.size() - at_ < size) {
      ok_ = false;
      return {};
    }
    at_ += size;
    return packet_.substr(at_ - size, size);
  }

  // Names may point back into the packet; a name's length bounds how often.
  std::string take_name() {
    std::string name;
    size_t from = at_;
    bool jumped = false;
    for (size_t steps = 0; ok_ && steps < 130; ++steps) {
      if (from >= packet_.size()) break;
      const unsigned length = byte(from);
      if (length == 0) {
        if (!jumped) at_ = from + 1;
        return name;
      }
      if ((length & 0xc0) == 0xc0) {
        if (from + 1 >= packet_.size()) break;
        const size_t target = (length & 0x3f) << 8 | byte(from + 1);
        if (!jumped) at_ = from + 2;
        jumped = true;
        // Only backwards, so it ends; and to names, which the header holds none of.
        if (target >= from || target < kHeader) break;
        from = target;
        continue;
      }
      if ((length & 0xc0) != 0 || packet_.size() - from - 1 < length) break;
      if (name.size() + length + 1 > kLongestName) break;
      if (!name.empty()) name += '.';
      for (const char c : packet_.substr(from + 1, length)) {
        name += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      }
      from += 1 + length;
    }
    ok_ = false;
    return {};
  }

 private:
  unsigned byte(size_t index) const { return static_cast<unsigned char>(packet_[index]); }
  std::string_view packet_;
  size_t at_ = 0;
  bool ok_ = true;
};

void put_record(std::string& out, const Record& record) {
  out += name_data(record.name);
  put16(out, static_cast<uint16_t>(record.type));
  put16(out, 1);
  put32(out, record.ttl);
  put16(out, record.data.size());
  out += record.data;
}

void skip_record(Cursor& cursor) {
  cursor.take_name();
  cursor.take(8);
  cursor.take(cursor.take16());
}

}  // namespace

std::string name_data(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const size_t dot = name.find('.');
    const std::string_view label = name.substr(0, dot);
    if (label.empty() || label.size() > 63) break;
    out += static_cast<char>(label.size());
    out += label;
    name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  }
  out += '\0';
  return out;
}

std::string address_data(uint32_t address) {
  std::string out;
  put32(out, address);
  return out;
}

std::string service_data(uint16_t priority, uint16_t weight, uint16_t port,
                         std::string_view target) {
  std::string out;
  put16(out, priority);
  put16(out, weight);
  put16(out, port);
  return out + name_data(target);
}

std::string authority_data(std::string_view zone, uint32_t serial, uint32_t negative_ttl) {
  std::string out = name_data("ns.dns." + std::string(zone));
  out += name_data("hostmaster." + std::string(zone));
  for (const uint32_t value : {serial, 7200U, 1800U, 86400U, negative_ttl}) put32(out, value);
  return out;
}

std::optional<Query> parse_query(std::string_view packet) {
  Cursor cursor(packet);
  Query query{.id = cursor.take16()};
  const uint16_t flags = cursor.take16();
  const uint16_t questions = cursor.take16();
  const size_t others = size_t{cursor.take16()} + cursor.take16();
  const uint16_t additional = cursor.take16();
  if (!cursor.ok() || (flags & 0x8000) != 0 || questions != 1) return std::nullopt;
  query.opcode = static_cast<uint8_t>(flags >> 11 & 15);
  query.recursion_desired = (flags & 0x0100) != 0;
  query.name = cursor.take_name();
  query.type = cursor.take16();
  query.dns_class = cursor.take16();
  if (!cursor.ok()) return std::nullopt;
  query.question = packet.substr(kHeader, cursor.at() - kHeader);
  for (size_t i = 0; i < others && cursor.ok(); ++i) skip_record(cursor);
  for (size_t i = 0; i < additional && cursor.ok(); ++i) {
    cursor.take_name();
    const uint16_t type = cursor.take16();
    const uint16_t size = cursor.take16();
    cursor.take(4);
    cursor.take(cursor.take16());
    if (!cursor.ok() || type != static_cast<uint16_t>(Type::kOpt)) continue;
    query.has_options = true;
    query.largest = std::clamp<size_t>(size, 512, kOurLargest);
  }
  return query;
}

std::string encode(const Query& query, const Response& response, size_t largest) {
  std::string body;
  size_t counts[3] = {0, 0, 0};
  bool cut = false;
  const size_t reserved = kHeader + query.question.size() + (query.has_options ? 11 : 0);
  size_t section = 0;
  for (const auto* records : {&response.answers, &response.authority, &response.additional}) {
    for (const Record& record : *records) {
      std::string one;
      put_record(one, record);
      if (cut || reserved + body.size() + one.size() > largest) {
        // What was asked for is missing; extras may be left out silently.
        cut = cut || section < 2;
        break;
      }
      body += one;
      ++counts[section];
    }
    ++section;
  }
  std::string out;
  put16(out, query.id);
  put16(out, 0x8000U | static_cast<unsigned>(query.opcode) << 11 |
                 (response.authoritative ? 0x0400U : 0U) | (cut ? 0x0200U : 0U) |
                 (query.recursion_desired ? 0x0100U : 0U) | 0x0080U |
                 static_cast<unsigned>(response.code));
  put16(out, 1);
  put16(out, counts[0]);
  put16(out, counts[1]);
  put16(out, counts[2] + (query.has_options ? 1 : 0));
  out += query.question;
  out += body;
  if (query.has_options) {
    out += '\0';
    put16(out, static_cast<uint16_t>(Type::kOpt));
    put16(out, kOurLargest);
    put32(out, 0);
    put16(out, 0);
  }
  return out;
}

std::string encode_query(uint16_t id, std::string_view name, Type type) {
  std::string out;
  put16(out, id);
  put16(out, 0x0100);
  put16(out, 1);
  put16(out, 0);
  put32(out, 0);
  out += name_data(name);
  put16(out, static_cast<uint16_t>(type));
  put16(out, 1);
  return out;
}

std::optional<ParsedResponse> parse_response(std::string_view packet) {
  Cursor cursor(packet);
  ParsedResponse response{.id = cursor.take16()};
  const uint16_t flags = cursor.take16();
  const uint16_t questions = cursor.take16();
  const uint16_t answers = cursor.take16();
  cursor.take32();
  if (!cursor.ok() || (flags & 0x8000) == 0) return std::nullopt;
  response.code = static_cast<Code>(flags & 15);
  response.authoritative = (flags & 0x0400) != 0;
  response.truncated = (flags & 0x0200) != 0;
  for (size_t i = 0; i < questions && cursor.ok(); ++i) {
    cursor.take_name();
    cursor.take(4);
  }
  for (size_t i = 0; i < answers && cursor.ok(); ++i) {
    Record record{.name = cursor.take_name(), .type = static_cast<Type>(cursor.take16())};
    cursor.take16();
    record.ttl = cursor.take32();
    record.data = cursor.take(cursor.take16());
    if (cursor.ok()) response.answers.push_back(std::move(record));
  }
  if (!cursor.ok()) return std::nullopt;
  return response;
}

}  // namespace grapnel::local::dns
