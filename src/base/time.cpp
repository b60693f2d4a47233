#include "base/time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace grapnel {
namespace {

using std::chrono::days;

// Reads a text from left to right; every step says whether it found what it asked for.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  bool at_end() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool is_digit() const { return peek() >= '0' && peek() <= '9'; }
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  // A number of exactly `digits` digits.
  std::optional<int> number(int digits) {
    int value = 0;
    for (int i = 0; i < digits; ++i) {
      if (!is_digit()) return std::nullopt;
      value = value * 10 + (take() - '0');
    }
    return value;
  }

 private:
  std::string_view rest_;
};

struct Unit {
  std::string_view name;
  int64_t size;
};

// The first that fits is taken: "ms" and "m" share a letter.
constexpr auto kGoUnits = std::to_array<Unit>({
    {"ns", 1},
    {"us", 1'000},
    {"µs", 1'000},  // U+00B5, micro sign
    {"μs", 1'000},  // U+03BC, Greek mu
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
});

constexpr auto kManifestUnits = std::to_array<Unit>({
    {"w", 7 * 24 * 3600},
    {"d", 24 * 3600},
    {"h", 3600},
    {"m", 60},
    {"s", 1},
});
constexpr int64_t kLongestTimeout = int64_t{1000} * 365 * 24 * 3600;  // may be added to any time

bool add_product(int64_t& sum, int64_t a, int64_t b) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(sum, product, &sum);
}

// The digits after the point, as a part of one unit; finer than a nanosecond is dropped.
int64_t scale_fraction(std::string_view digits, int64_t unit) {
  __int128 part = 0;
  __int128 scale = 1;
  for (const char c : digits.substr(0, 18)) {
    part = part * 10 + (c - '0');
    scale *= 10;
  }
  return static_cast<int64_t>(part * unit / scale);
}

// One "1.5h" of a Go duration, added to `total` nanoseconds.
bool add_go_term(Scanner& in, int64_t& total) {
  int64_t whole = 0;
  std::string fraction;
  bool any = false;
  for (; in.is_digit(); any = true) {
    const int digit = in.take() - '0';
    if (__builtin_mul_overflow(whole, int64_t{10}, &whole)) return false;
    if (__builtin_add_overflow(whole, int64_t{digit}, &whole)) return false;
  }
  if (in.skip(".")) {
    for (; in.is_digit(); any = true) fraction += in.take();
  }
  if (!any) return false;
  for (const Unit& unit : kGoUnits) {
    if (!in.skip(unit.name)) continue;
    return add_product(total, whole, unit.size) &&
           !__builtin_add_overflow(total, scale_fraction(fraction, unit.size), &total);
  }
  return false;
}

std::string format_to_seconds(Time time) {
  // Four digits are all that RFC 3339 has for the year.
  constexpr Time kFirst = std::chrono::sys_days{std::chrono::year{0} / 1 / 1};
  constexpr Time kPast = std::chrono::sys_days{std::chrono::year{10000} / 1 / 1};
  time = std::clamp(time, kFirst, kPast - Duration(1));
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const auto second = std::chrono::floor<seconds>(time - day).count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     second / 3600, second / 60 % 60, second % 60);
}

std::optional<Duration> read_offset(Scanner& in) {
  if (in.skip("Z") || in.skip("z")) return Duration(0);
  const bool west = in.peek() == '-';
  if (!in.skip("+") && !in.skip("-")) return std::nullopt;
  const auto h = in.number(2);
  if (!h || !in.skip(":")) return std::nullopt;
  const auto m = in.number(2);
  if (!m || *h > 23 || *m > 59) return std::nullopt;
  const Duration offset = hours(*h) + minutes(*m);
  return west ? -offset : offset;
}

std::string two_units(int64_t large, char large_unit, int64_t small, char small_unit) {
  if (small == 0) return fmt::format("{}{}", large, large_unit);
  return fmt::format("{}{}{}{}", large, large_unit, small, small_unit);
}

}  // namespace

std::string format_time(Time time) {
  return format_to_seconds(time) + "Z";
}

std::string format_micro_time(Time time) {
  const auto fraction = (time - std::chrono::floor<seconds>(time)).count();
  return fmt::format("{}.{:06}Z", format_to_seconds(time), fraction);
}

std::optional<Time> parse_time(std::string_view text) {
  Scanner in(text);
  const auto y = in.number(4);
  if (!y || !in.skip("-")) return std::nullopt;
  const auto mo = in.number(2);
  if (!mo || !in.skip("-")) return std::nullopt;
  const auto d = in.number(2);
  if (!d || !(in.skip("T") || in.skip("t"))) return std::nullopt;
  const auto h = in.number(2);
  if (!h || !in.skip(":")) return std::nullopt;
  const auto mi = in.number(2);
  if (!mi || !in.skip(":")) return std::nullopt;
  const auto s = in.number(2);
  if (!s || *h > 23 || *mi > 59 || *s > 59) return std::nullopt;
  int64_t fraction = 0;
  if (in.skip(".")) {
    int digits = 0;
    for (; in.is_digit(); ++digits) {
      const int digit = in.take() - '0';
      if (digits < 6) fraction = fraction * 10 + digit;
    }
    if (digits == 0) return std::nullopt;
    for (; digits < 6; ++digits) fraction *= 10;
  }
  const auto offset = read_offset(in);
  const auto date = std::chrono::year{*y} / *mo / *d;
  if (!offset || !in.at_end() || !date.ok()) return std::nullopt;
  return Time(std::chrono::sys_days(date)) + hours(*h) + minutes(*mi) + seconds(*s) +
         microseconds(fraction) - *offset;
}

std::optional<Duration> parse_go_duration(std::string_view text) {
  Scanner in(text);
  const bool negative = in.peek() == '-';
  if (negative || in.peek() == '+') in.take();
  if (in.at_end()) return std::nullopt;
  if (Scanner zero = in; zero.skip("0") && zero.at_end()) return Duration(0);
  int64_t nanoseconds = 0;
  while (!in.at_end()) {
    if (!add_go_term(in, nanoseconds)) return std::nullopt;
  }
  const Duration length(nanoseconds / 1000);
  return negative ? -length : length;
}

std::optional<Duration> parse_manifest_duration(std::string_view text) {
  Scanner in(text);
  int64_t total = 0;
  size_t next_unit = 0;
  for (bool first = true; first || !in.at_end(); first = false) {
    if (!first) {
      if (!in.skip(" ")) return std::nullopt;
      while (in.skip(" ")) continue;
    }
    if (!in.is_digit()) return std::nullopt;
    int64_t count = 0;
    while (in.is_digit()) {
      count = count * 10 + (in.take() - '0');
      if (count > 1'000'000'000) return std::nullopt;
    }
    while (next_unit < kManifestUnits.size() && !in.skip(kManifestUnits[next_unit].name)) {
      ++next_unit;
    }
    if (next_unit == kManifestUnits.size()) return std::nullopt;
    total += count * kManifestUnits[next_unit++].size;
  }
  if (total > kLongestTimeout) return std::nullopt;
  return seconds(total);
}

std::string format_age(Duration age) {
  const int64_t s = duration_cast<seconds>(age).count();
  const int64_t m = s / 60;
  const int64_t h = m / 60;
  const int64_t d = h / 24;
  // A clock that is a second behind is harmless.
  if (s < -1) return "<invalid>";
  if (s < 0) return "0s";
  if (s < 120) return fmt::format("{}s", s);
  if (m < 10) return two_units(m, 'm', s % 60, 's');
  if (m < 180) return fmt::format("{}m", m);
  if (h < 8) return two_units(h, 'h', m % 60, 'm');
  if (h < 48) return fmt::format("{}h", h);
  if (d < 8) return two_units(d, 'd', h % 24, 'h');
  if (d < 2 * 365) return fmt::format("{}d", d);
  if (d < 8 * 365) return two_units(d / 365, 'y', d % 365, 'd');
  return fmt::format("{}y", d / 365);
}

}  // namespace grapnel
