// grapnel-sim: runs schedules of the simulator.
//
//   grapnel-sim --seeds 10000            seeds 1 to 10000
//   grapnel-sim --seed 4711 --verbose    one schedule, told step by step
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "tests/simulation/echo.h"
#include "tests/simulation/world.h"

using namespace grapnel;
using namespace grapnel::simulation;

namespace {

struct Arguments {
  uint64_t first = 1;
  uint64_t count = 1;
  bool verbose = false;
  bool valid = true;
};

Arguments parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--verbose") {
      out.verbose = true;
    } else if (i + 1 < argc && name == "--seed") {
      out.first = std::strtoull(argv[++i], nullptr, 0);
    } else if (i + 1 < argc && name == "--seeds") {
      out.count = std::strtoull(argv[++i], nullptr, 0);
    } else {
      out.valid = false;
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  if (!arguments.valid) {
    fmt::print(stderr, "usage: grapnel-sim [--seed FIRST] [--seeds COUNT] [--verbose]\n");
    return 2;
  }
  // Beyond the highest level: a schedule is full of failures that are meant.
  log_setup(LogFormat::kText, arguments.verbose ? LogLevel::kInfo : static_cast<LogLevel>(99));
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto start = std::chrono::steady_clock::now();
  size_t violations = 0;
  size_t writes = 0;
  size_t crashes = 0;
  uint64_t digest = 0;
  for (uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    const auto subject = make_echo_subject();
    const Report report = World(seed, *subject, arguments.verbose).run();
    writes += report.writes;
    crashes += report.crashes;
    digest = digest * 31 + report.digest;
    if (report.violation) {
      ++violations;
      fmt::print("{}\n", *report.violation);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{} schedules, {} violations, {} writes, {} crashes, digest {:016x}, {:.1f} s\n",
             arguments.count, violations, writes, crashes, digest, took.count());
  return violations == 0 ? 0 : 1;
}
