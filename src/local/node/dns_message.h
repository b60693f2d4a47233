// DNS packets (RFC 1035, and the packet size of RFC 6891): as much as a resolver's questions and
// our answers need. Pure; any bytes are safe to read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace grapnel::local::dns {

enum class Type : uint16_t {
  kA = 1,
  kCname = 5,
  kSoa = 6,
  kPtr = 12,
  kAaaa = 28,
  kSrv = 33,
  kOpt = 41,
  kAny = 255,
};

enum class Code : uint8_t {
  kNoError = 0,
  kFormatError = 1,
  kServerFailure = 2,
  kNoSuchName = 3,
  kNotImplemented = 4,
  kRefused = 5,
};

struct Query {
  uint16_t id = 0;
  uint8_t opcode = 0;
  bool recursion_desired = false;
  std::string name;  // lower case, no dot at the end; "" is the root
  uint16_t type = 0;
  uint16_t dns_class = 1;
  std::string question;      // as it came: its spelling is given back
  bool has_options = false;  // it carried an OPT record, so the answer does
  size_t largest = 512;      // what the asker can take by UDP
};

struct Record {
  std::string name;
  Type type = Type::kA;
  uint32_t ttl = 5;
  std::string data;  // as it is sent
};

struct Response {
  Code code = Code::kNoError;
  bool authoritative = true;
  std::vector<Record> answers;
  std::vector<Record> authority;
  std::vector<Record> additional;
};

// A question with exactly one name in it; none for anything else, which is then not answered.
std::optional<Query> parse_query(std::string_view packet);
// Cut at `largest`, and marked as cut, where it does not fit.
std::string encode(const Query& query, const Response& response, size_t largest);

// For askers and tests.
std::string encode_query(uint16_t id, std::string_view name, Type type);
struct ParsedResponse {
  uint16_t id = 0;
  Code code = Code::kNoError;
  bool authoritative = false;
  bool truncated = false;
  std::vector<Record> answers;
};
std::optional<ParsedResponse> parse_response(std::string_view packet);

std::string address_data(uint32_t address);
std::string name_data(std::string_view name);
std::string service_data(uint16_t priority, uint16_t weight, uint16_t port,
                         std::string_view target);
std::string authority_data(std::string_view zone, uint32_t serial, uint32_t negative_ttl);

}  // namespace grapnel::local::dns
