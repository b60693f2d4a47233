// Time zones by their names in the tz database, for schedules.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"

namespace grapnel {

// Local time: what a clock in some place shows.
struct WallTime {
  int year = 1970;
  int month = 1;
  int day = 1;
  int hour = 0;
  int minute = 0;
  bool operator==(const WallTime&) const = default;
};

class TimeZone {
 public:
  // "Europe/Paris"; nothing when this machine knows no such zone.
  static std::optional<TimeZone> find(const std::string& name);
  static TimeZone utc() { return TimeZone(""); }

  WallTime wall_time(Time time) const;
  // Nothing where clocks jump over it. Of two such moments, the first.
  std::optional<Time> time_at(const WallTime& wall) const;

 private:
  explicit TimeZone(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

}  // namespace grapnel
