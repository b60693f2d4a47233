// Schedules in cron's notation: "*/5 9-17 * * mon-fri", "@hourly".
#pragma once

#include <bitset>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "base/time_zone.h"

namespace grapnel {

class Schedule {
 public:
  static Result<Schedule> parse(std::string_view text);

  // The first moment after this one; nothing when there is none within eight years (30 February).
  std::optional<Time> next_after(Time time, const TimeZone& zone) const;

 private:
  bool has_day(const WallTime& wall) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<7> weekdays_;  // 0: Sunday
  // Of two restrictions on the day, either is enough.
  bool any_day_ = false;
  bool any_weekday_ = false;
};

}  // namespace grapnel
