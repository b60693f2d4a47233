#include "base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace grapnel {
namespace {

constexpr __int128 kNano = 1'000'000'000;
constexpr __int128 kMost = static_cast<__int128>(std::numeric_limits<int64_t>::max()) * kNano;
constexpr __int128 kEnd = kMost * 1'000'000;  // where sums stop growing: far below overflow

constexpr auto kDecimalSuffixes =
    std::to_array<std::string_view>({"n", "u", "m", "", "k", "M", "G", "T", "P", "E"});
constexpr int kPlainSuffix = 3;
constexpr auto kBinarySuffixes =
    std::to_array<std::string_view>({"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"});

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& text) {
  size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  const std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

struct Suffix {
  int decimal = 0;  // power of 10
  int binary = 0;   // power of 1024
  bool exponent = false;
};

std::optional<Suffix> parse_suffix(std::string_view text) {
  for (size_t i = 0; i < kDecimalSuffixes.size(); ++i) {
    if (text == kDecimalSuffixes[i]) return Suffix{.decimal = (static_cast<int>(i) - 3) * 3};
  }
  for (size_t i = 1; i < kBinarySuffixes.size(); ++i) {
    if (text == kBinarySuffixes[i]) return Suffix{.binary = static_cast<int>(i)};
  }
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string_view digits = take_digits(text);
  if (digits.empty() || !text.empty()) return std::nullopt;
  int value = 0;
  for (const char c : digits) value = std::min(value * 10 + (c - '0'), 100'000);
  return Suffix{.decimal = negative ? -value : value, .exponent = true};
}

// The digits of a number around its decimal point, which may lie outside of them.
struct Digits {
  std::string_view whole;
  std::string_view fraction;
  int shift;  // the point stands this much further to the right

  int64_t point() const { return static_cast<int64_t>(whole.size()) + shift; }
  int64_t size() const { return static_cast<int64_t>(whole.size() + fraction.size()); }
  int at(int64_t i) const {
    if (i < 0 || i >= size()) return 0;
    const auto n = static_cast<size_t>(i);
    return (n < whole.size() ? whole[n] : fraction[n - whole.size()]) - '0';
  }
};

// The value times `unit`, rounded up; not more than `most`.
__int128 scale_up(const Digits& digits, __int128 unit, __int128 most) {
  __int128 whole = 0;
  const int64_t point = digits.point();
  for (int64_t i = 0; i < point; ++i) {
    if (whole == 0 && i >= digits.size()) break;
    whole = whole * 10 + digits.at(i);
    if (whole > most / unit) return most;
  }
  // From the last digit to the first: the floor of each step is the floor of the exact value, and
  // nothing ever exceeds ten units.
  __int128 part = 0;
  bool inexact = false;
  for (int64_t i = digits.size() - 1; i >= point; --i) {
    if (i < 0 && part == 0) break;
    part += digits.at(i) * unit;
    inexact = inexact || part % 10 != 0;
    part /= 10;
  }
  return std::min(whole * unit + part + (inexact ? 1 : 0), most);
}

__int128 pow_of(__int128 base, int exponent) {
  __int128 value = 1;
  for (; exponent > 0; --exponent) value *= base;
  return value;
}

int64_t divide_up(__int128 value, __int128 divisor) {
  __int128 quotient = value / divisor;
  if (value % divisor != 0) quotient += value > 0 ? 1 : -1;
  return static_cast<int64_t>(std::clamp<__int128>(quotient, std::numeric_limits<int64_t>::min(),
                                                   std::numeric_limits<int64_t>::max()));
}

__int128 clamp_sum(__int128 value) {
  return std::clamp<__int128>(value, -kEnd, kEnd);
}

// fmt writes __int128 too.
std::string with_suffix(__int128 value, std::string_view suffix) {
  return fmt::format("{}{}", value, suffix);
}

}  // namespace

std::optional<Quantity> Quantity::parse(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string_view whole = take_digits(text);
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  const auto suffix = parse_suffix(text);
  if (!suffix) return std::nullopt;
  const __int128 nano = scale_up({.whole = whole, .fraction = fraction, .shift = suffix->decimal},
                                 kNano * pow_of(1024, suffix->binary), kMost);
  const Format format = suffix->exponent ? Format::kExponent
                        : suffix->binary ? Format::kBinary
                                         : Format::kDecimal;
  return Quantity(negative ? -nano : nano, format);
}

Quantity Quantity::from_units(int64_t units) {
  return Quantity(units * kNano, Format::kDecimal);
}

Quantity Quantity::from_milli(int64_t milli) {
  return Quantity(milli * (kNano / 1000), Format::kDecimal);
}

int64_t Quantity::units() const {
  return divide_up(nano_, kNano);
}

int64_t Quantity::milli() const {
  return divide_up(nano_, kNano / 1000);
}

std::string Quantity::text() const {
  if (nano_ == 0) return "0";
  const __int128 units = nano_ / kNano;
  const bool small = units > -1024 && units < 1024;
  if (format_ == Format::kBinary && !small && nano_ % kNano == 0) {
    __int128 value = units;
    size_t power = 0;
    for (; value % 1024 == 0 && power + 1 < kBinarySuffixes.size(); ++power) value /= 1024;
    return with_suffix(value, kBinarySuffixes[power]);
  }
  __int128 value = nano_;
  int power = 0;
  for (; value % 1000 == 0 && power + 1 < static_cast<int>(kDecimalSuffixes.size()); ++power) {
    value /= 1000;
  }
  if (format_ != Format::kExponent || power == kPlainSuffix) {
    return with_suffix(value, kDecimalSuffixes[static_cast<size_t>(power)]);
  }
  return with_suffix(value, fmt::format("e{}", (power - kPlainSuffix) * 3));
}

Quantity Quantity::operator+(const Quantity& other) const {
  return Quantity(clamp_sum(nano_ + other.nano_), nano_ == 0 ? other.format_ : format_);
}

Quantity Quantity::operator-(const Quantity& other) const {
  return Quantity(clamp_sum(nano_ - other.nano_), nano_ == 0 ? other.format_ : format_);
}

Quantity Quantity::operator*(int64_t factor) const {
  __int128 product = 0;
  if (__builtin_mul_overflow(nano_, static_cast<__int128>(factor), &product)) {
    product = (nano_ < 0) == (factor < 0) ? kEnd : -kEnd;
  }
  return Quantity(clamp_sum(product), format_);
}

}  // namespace grapnel
