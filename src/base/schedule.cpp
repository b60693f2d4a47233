#include "base/schedule.h"

#include <array>
#include <charconv>
#include <vector>

#include "base/strings.h"

namespace grapnel {
namespace {

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed",
                                                    "thu", "fri", "sat"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMacros{
    {{"@yearly", "0 0 1 1 *"},
     {"@annually", "0 0 1 1 *"},
     {"@monthly", "0 0 1 * *"},
     {"@weekly", "0 0 * * 0"},
     {"@daily", "0 0 * * *"},
     {"@midnight", "0 0 * * *"},
     {"@hourly", "0 * * * *"}}};

struct Field {
  std::string_view name;
  int first = 0;
  int last = 0;
  std::span<const std::string_view> names;  // of first, first + 1 …
};

Error wrong(const Field& field, std::string_view text) {
  return Error{.reason = Reason::kInvalid,
               .message = fmt::format("'{}' is no {} ({} to {})", text, field.name, field.first,
                                      field.last)};
}

Result<int> parse_value(const Field& field, std::string_view text) {
  const std::string lower = to_lower(text);
  for (size_t i = 0; i < field.names.size(); ++i) {
    if (field.names[i] == lower) return field.first + static_cast<int>(i);
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
      value < field.first || value > field.last) {
    return fail(wrong(field, text));
  }
  return value;
}

// One part of a field: *, 5, 1-5, */2, 1-30/5, 7/3.
template <size_t N>
Result<> parse_part(const Field& field, std::string_view part, std::bitset<N>& out, bool& any) {
  int step = 1;
  std::string_view range = part;
  if (const size_t slash = part.find('/'); slash != std::string_view::npos) {
    range = part.substr(0, slash);
    const auto parsed = parse_value({field.name, 1, field.last, {}}, part.substr(slash + 1));
    if (!parsed) return fail(wrong(field, part));
    step = *parsed;
  }
  int first = field.first;
  int last = field.last;
  if (range == "*" || range == "?") {
    any = any || step == 1;
  } else {
    const size_t dash = range.find('-');
    const auto low = parse_value(field, range.substr(0, dash));
    if (!low) return fail(low.error());
    first = *low;
    if (dash != std::string_view::npos) {
      const auto high = parse_value(field, range.substr(dash + 1));
      if (!high) return fail(high.error());
      last = *high;
    } else if (range.size() == part.size()) {
      last = first;
    }
  }
  if (first > last) return fail(wrong(field, part));
  for (int value = first; value <= last; value += step) out.set(static_cast<size_t>(value));
  return {};
}

template <size_t N>
Result<> parse_field(const Field& field, std::string_view text, std::bitset<N>& out, bool& any) {
  for (const std::string_view part : split(text, ',')) {
    if (auto parsed = parse_part(field, part, out, any); !parsed) return parsed;
  }
  return {};
}

int weekday_of(const WallTime& wall) {
  const std::chrono::weekday day(std::chrono::sys_days(std::chrono::year_month_day(
      std::chrono::year(wall.year), std::chrono::month(wall.month), std::chrono::day(wall.day))));
  return static_cast<int>(day.c_encoding());
}

WallTime next_day(const WallTime& wall) {
  const std::chrono::year_month_day next(
      std::chrono::sys_days(std::chrono::year_month_day(std::chrono::year(wall.year),
                                                        std::chrono::month(wall.month),
                                                        std::chrono::day(wall.day))) +
      std::chrono::days(1));
  return {.year = static_cast<int>(next.year()),
          .month = static_cast<int>(static_cast<unsigned>(next.month())),
          .day = static_cast<int>(static_cast<unsigned>(next.day()))};
}

}  // namespace

Result<Schedule> Schedule::parse(std::string_view text) {
  for (const auto& [macro, meaning] : kMacros) {
    if (text == macro) text = meaning;
  }
  std::vector<std::string_view> fields;
  for (const std::string_view part : split(text, ' ')) {
    if (!part.empty()) fields.push_back(part);
  }
  if (fields.size() != 5) {
    return fail(Reason::kInvalid, "expected exactly 5 fields, found {}: [{}]", fields.size(), text);
  }
  Schedule schedule;
  bool ignored = false;
  auto parsed = parse_field({"minute", 0, 59, {}}, fields[0], schedule.minutes_, ignored);
  if (parsed) parsed = parse_field({"hour", 0, 23, {}}, fields[1], schedule.hours_, ignored);
  if (parsed) {
    parsed =
        parse_field({"day of the month", 1, 31, {}}, fields[2], schedule.days_, schedule.any_day_);
  }
  if (parsed) parsed = parse_field({"month", 1, 12, kMonths}, fields[3], schedule.months_, ignored);
  if (parsed) {
    parsed = parse_field({"day of the week", 0, 6, kWeekdays}, fields[4], schedule.weekdays_,
                         schedule.any_weekday_);
  }
  if (!parsed) return fail(parsed.error());
  return schedule;
}

bool Schedule::has_day(const WallTime& wall) const {
  if (!months_[static_cast<size_t>(wall.month)]) return false;
  const bool day = days_[static_cast<size_t>(wall.day)];
  const bool weekday = weekdays_[static_cast<size_t>(weekday_of(wall))];
  return any_day_ || any_weekday_ ? day && weekday : day || weekday;
}

std::optional<Time> Schedule::next_after(Time time, const TimeZone& zone) const {
  constexpr int kMostDays = 8 * 366;
  WallTime day = zone.wall_time(time);
  for (int i = 0; i < kMostDays; ++i, day = next_day(day)) {
    if (!has_day(day)) continue;
    for (int hour = 0; hour < 24; ++hour) {
      if (!hours_[static_cast<size_t>(hour)]) continue;
      for (int minute = 0; minute < 60; ++minute) {
        if (!minutes_[static_cast<size_t>(minute)]) continue;
        const auto found = zone.time_at({day.year, day.month, day.day, hour, minute});
        if (found && *found > time) return found;
      }
    }
  }
  return std::nullopt;
}

}  // namespace grapnel
