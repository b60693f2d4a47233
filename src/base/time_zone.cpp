#include "base/time_zone.h"

#include <absl/time/time.h>

namespace grapnel {
namespace {

absl::TimeZone zone_of(const std::string& name) {
  absl::TimeZone zone = absl::UTCTimeZone();
  if (!name.empty()) absl::LoadTimeZone(name, &zone);
  return zone;
}

}  // namespace

std::optional<TimeZone> TimeZone::find(const std::string& name) {
  absl::TimeZone zone;
  if (name.empty() || name == "Local" || !absl::LoadTimeZone(name, &zone)) return std::nullopt;
  return TimeZone(name);
}

WallTime TimeZone::wall_time(Time time) const {
  const auto civil = zone_of(name_).At(absl::FromChrono(time)).cs;
  return {.year = static_cast<int>(civil.year()),
          .month = civil.month(),
          .day = civil.day(),
          .hour = civil.hour(),
          .minute = civil.minute()};
}

std::optional<Time> TimeZone::time_at(const WallTime& wall) const {
  const auto found = zone_of(name_).At(
      absl::CivilSecond(wall.year, wall.month, wall.day, wall.hour, wall.minute, 0));
  if (found.kind == absl::TimeZone::TimeInfo::SKIPPED) return std::nullopt;
  return Time(seconds(absl::ToUnixSeconds(found.pre)));
}

}  // namespace grapnel
