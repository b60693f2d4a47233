// The protobuf wire format: tags, varints and lengths, nothing more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace grapnel::kube {

// A body of Kubernetes' begins with these.
inline constexpr std::string_view kProtobufMagic("k8s\0", 4);

struct WireField {
  uint32_t number = 0;
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 } type{};
  uint64_t value = 0;      // kVarint, kFixed64, kFixed32
  std::string_view bytes;  // kBytes
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  // Nothing at the end, and when the bytes are broken: ok() tells the two apart.
  std::optional<WireField> next();
  bool ok() const { return ok_; }
  // A varint, for packed lists.
  std::optional<uint64_t> varint();
  bool at_end() const { return rest_.empty(); }

 private:
  std::optional<WireField> broken();
  std::string_view rest_;
  bool ok_ = true;
};

// One field each, at the end of a message.
void append_number(std::string& out, uint32_t number, uint64_t value);
void append_bytes(std::string& out, uint32_t number, std::string_view bytes);

}  // namespace grapnel::kube
