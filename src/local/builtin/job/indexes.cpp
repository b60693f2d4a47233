#include "local/builtin/job/indexes.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace grapnel::local {
namespace {

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::optional<Indexes> Indexes::parse(std::string_view text, int64_t bound) {
  Indexes indexes;
  if (text.empty()) return indexes;
  int64_t previous = -1;
  for (const auto part : split(text, ',')) {
    const auto dash = part.find('-');
    const auto first = parse_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(part.substr(dash + 1));
    if (!first || !last || *last < *first || *first <= previous) return std::nullopt;
    const bool adjoins = !indexes.ranges_.empty() && *first == previous + 1;
    previous = *last;
    if (*first >= bound) continue;
    const int64_t end = std::min(*last, bound - 1);
    if (adjoins) {
      std::prev(indexes.ranges_.end())->second = end;
    } else {
      indexes.ranges_[*first] = end;
    }
  }
  return indexes;
}

void Indexes::insert(int64_t index) {
  if (contains(index)) return;
  int64_t first = index;
  int64_t last = index;
  const auto next = ranges_.upper_bound(index);
  if (next != ranges_.end() && next->first == index + 1) last = next->second;
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (before->second == index - 1) first = before->first;
  }
  ranges_.erase(index + 1);
  ranges_[first] = last;
}

bool Indexes::contains(int64_t index) const {
  const auto next = ranges_.upper_bound(index);
  return next != ranges_.begin() && std::prev(next)->second >= index;
}

int64_t Indexes::size() const {
  int64_t total = 0;
  for (const auto& [first, last] : ranges_) total += last - first + 1;
  return total;
}

std::string Indexes::text() const {
  std::string text;
  for (const auto& [first, last] : ranges_) {
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    // Two neighbours are written apart: "1,2", not "1-2".
    if (last == first + 1) text += "," + std::to_string(last);
    if (last > first + 1) text += "-" + std::to_string(last);
  }
  return text;
}

int64_t Indexes::first_missing(int64_t from) const {
  const auto next = ranges_.upper_bound(from);
  if (next == ranges_.begin()) return from;
  return std::max(from, std::prev(next)->second < from ? from : std::prev(next)->second + 1);
}

int64_t Indexes::count_common(const Indexes& other) const {
  int64_t common = 0;
  for (const auto& [first, last] : ranges_) {
    for (const auto& [begin, end] : other.ranges_) {
      common += std::max<int64_t>(0, std::min(last, end) - std::max(first, begin) + 1);
    }
  }
  return common;
}

}  // namespace grapnel::local
