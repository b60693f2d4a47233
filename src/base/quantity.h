// Kubernetes quantities: "500m", "2Gi", "1e3", "0.5". Exact: nano-units in 128 bits, no doubles.
//
// As in Kubernetes, a parsed value finer than a nano-unit is rounded away from zero, and one beyond
// the int64 range becomes its end.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace grapnel {

class Quantity {
 public:
  Quantity() = default;
  static std::optional<Quantity> parse(std::string_view text);
  static Quantity from_units(int64_t units);
  static Quantity from_milli(int64_t milli);

  // Rounded up (away from zero), as Kubernetes does; the end of the range when it does not fit.
  int64_t units() const;
  int64_t milli() const;
  // Canonical text: "500m", "2Gi" (binary when it was parsed so and divides evenly), "3".
  std::string text() const;

  Quantity operator+(const Quantity& other) const;
  Quantity operator-(const Quantity& other) const;
  Quantity operator*(int64_t factor) const;
  bool operator==(const Quantity& other) const { return nano_ == other.nano_; }
  std::strong_ordering operator<=>(const Quantity& other) const { return nano_ <=> other.nano_; }
  bool is_zero() const { return nano_ == 0; }

 private:
  enum class Format : uint8_t { kDecimal, kBinary, kExponent };  // 1k, 1Ki, 1e3
  Quantity(__int128 nano, Format format) : nano_(nano), format_(format) {}

  __int128 nano_ = 0;
  Format format_ = Format::kDecimal;
};

}  // namespace grapnel
