#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>

namespace grapnel {
namespace {

struct Logger {
  LogLevel lowest = LogLevel::kInfo;
  bool json = false;
  std::shared_ptr<spdlog::logger> sink;
};

Logger& logger() {
  static Logger instance = [] {
    Logger made;
    made.sink = std::make_shared<spdlog::logger>("grapnel",
                                                 std::make_shared<spdlog::sinks::stderr_sink_st>());
    made.sink->set_level(spdlog::level::debug);
    made.sink->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %L %v", spdlog::pattern_time_type::utc);
    return made;
  }();
  return instance;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool needs_quotes(std::string_view text) {
  return text.empty() || text.find_first_of(" \"\\=\n\t") != std::string_view::npos;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void log_setup(LogFormat format, LogLevel lowest) {
  auto& l = logger();
  l.lowest = lowest;
  l.json = format == LogFormat::kJson || (format == LogFormat::kAuto && isatty(STDERR_FILENO) == 0);
  if (l.json) {
    l.sink->set_pattern(R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})",
                        spdlog::pattern_time_type::utc);
  }
}

bool log_enabled(LogLevel level) {
  return level >= logger().lowest;
}

void log(LogLevel level, std::string_view message, LogFields fields) {
  if (!log_enabled(level)) return;
  auto& l = logger();
  std::string line = l.json ? "\"msg\":" + in_quotes(message) : std::string(message);
  for (const auto& field : fields) {
    if (l.json) {
      line += fmt::format(",{}:{}", in_quotes(field.key), in_quotes(field.value));
    } else {
      line += fmt::format(" {}={}", field.key,
                          needs_quotes(field.value) ? in_quotes(field.value) : field.value);
    }
  }
  l.sink->log(spdlog_level(level), line);
}

}  // namespace grapnel
