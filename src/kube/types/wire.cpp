#include "kube/types/wire.h"

namespace grapnel::kube {
namespace {

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_tag(std::string& out, uint32_t number, WireField::Type type) {
  append_varint(out, uint64_t{number} << 3 | static_cast<uint64_t>(type));
}

}  // namespace

std::optional<WireField> WireReader::broken() {
  ok_ = false;
  rest_ = {};
  return std::nullopt;
}

std::optional<uint64_t> WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) break;
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  ok_ = false;
  rest_ = {};
  return std::nullopt;
}

std::optional<WireField> WireReader::next() {
  if (rest_.empty()) return std::nullopt;
  const auto tag = varint();
  if (!tag || (*tag >> 3) == 0 || (*tag >> 3) > 0x1fffffff) return broken();
  WireField field;
  field.number = static_cast<uint32_t>(*tag >> 3);
  field.type = static_cast<WireField::Type>(*tag & 7);
  size_t size = 0;
  switch (field.type) {
    case WireField::Type::kVarint: {
      const auto value = varint();
      if (!value) return broken();
      field.value = *value;
      return field;
    }
    case WireField::Type::kFixed64:
      size = 8;
      break;
    case WireField::Type::kFixed32:
      size = 4;
      break;
    case WireField::Type::kBytes: {
      const auto length = varint();
      if (!length || *length > rest_.size()) return broken();
      field.bytes = rest_.substr(0, *length);
      rest_.remove_prefix(*length);
      return field;
    }
    default:
      return broken();  // groups are long gone
  }
  if (rest_.size() < size) return broken();
  for (size_t i = 0; i < size; ++i) {
    field.value |= static_cast<uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(size);
  return field;
}

void append_number(std::string& out, uint32_t number, uint64_t value) {
  append_tag(out, number, WireField::Type::kVarint);
  append_varint(out, value);
}

void append_bytes(std::string& out, uint32_t number, std::string_view bytes) {
  append_tag(out, number, WireField::Type::kBytes);
  append_varint(out, bytes.size());
  out += bytes;
}

}  // namespace grapnel::kube
