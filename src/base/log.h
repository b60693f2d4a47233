// Structured log lines: text on a terminal, JSON otherwise. Each line carries the object it is
// about.
//
//   log_info("creating pods",
//            {{"kind", "JobSet"}, {"namespace", ns}, {"name", name}, {"count", 3}});
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace grapnel {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kAuto, kText, kJson };

struct LogField {
  template <class T>
  LogField(std::string_view key_in, const T& value_in)
      : key(key_in), value(fmt::format("{}", value_in)) {}
  std::string_view key;
  std::string value;
};
using LogFields = std::initializer_list<LogField>;

// Once, at the start of a program. kAuto: text when standard error is a terminal.
void log_setup(LogFormat format, LogLevel lowest);
bool log_enabled(LogLevel level);

void log(LogLevel level, std::string_view message, LogFields fields = {});
inline void log_debug(std::string_view message, LogFields fields = {}) {
  if (log_enabled(LogLevel::kDebug)) log(LogLevel::kDebug, message, fields);
}
inline void log_info(std::string_view message, LogFields fields = {}) {
  log(LogLevel::kInfo, message, fields);
}
inline void log_warning(std::string_view message, LogFields fields = {}) {
  log(LogLevel::kWarning, message, fields);
}
inline void log_error(std::string_view message, LogFields fields = {}) {
  log(LogLevel::kError, message, fields);
}

}  // namespace grapnel
