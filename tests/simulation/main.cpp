// grapnel-sim: runs schedules of the simulator.
//
//   grapnel-sim --seeds 10000 --jobs 2   seeds 1 to 10000, in two processes
//   grapnel-sim --seed 4711 --verbose    one schedule, told step by step
//   grapnel-sim --subject jobset …       another subject than echo
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "tests/simulation/echo.h"
#include "tests/simulation/jobset.h"
#include "tests/simulation/world.h"

using namespace grapnel;
using namespace grapnel::simulation;

namespace {

std::unique_ptr<Subject> make_subject(std::string_view name) {
  if (name == "echo") return make_echo_subject();
  if (name == "jobset") return make_jobset_subject();
  return nullptr;
}

struct Arguments {
  std::string_view subject = "echo";
  uint64_t first = 1;
  uint64_t count = 1;
  uint64_t jobs = 1;
  bool verbose = false;
  bool valid = true;
};

Arguments parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto value = [&] { return std::strtoull(argv[++i], nullptr, 0); };
    if (name == "--verbose") {
      out.verbose = true;
    } else if (i + 1 < argc && name == "--seed") {
      out.first = value();
    } else if (i + 1 < argc && name == "--seeds") {
      out.count = value();
    } else if (i + 1 < argc && name == "--jobs") {
      out.jobs = value();
    } else if (i + 1 < argc && name == "--subject") {
      out.subject = argv[++i];
    } else {
      out.valid = false;
    }
  }
  out.valid = out.valid && out.jobs > 0 && make_subject(out.subject) != nullptr;
  return out;
}

// Every jobs-th seed, from the job-th on. True when no invariant was broken.
bool run(const Arguments& arguments, uint64_t job) {
  const auto start = std::chrono::steady_clock::now();
  size_t schedules = 0;
  size_t violations = 0;
  size_t writes = 0;
  size_t crashes = 0;
  uint64_t digest = 0;
  for (uint64_t i = job; i < arguments.count; i += arguments.jobs) {
    const auto subject = make_subject(arguments.subject);
    const Report report = World(arguments.first + i, *subject, arguments.verbose).run();
    ++schedules;
    writes += report.writes;
    crashes += report.crashes;
    digest = digest * 31 + report.digest;
    if (!report.violation) continue;
    ++violations;
    fmt::print("{}\n", *report.violation);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{} schedules, {} violations, {} writes, {} crashes, digest {:016x}, {:.1f} s\n",
             schedules, violations, writes, crashes, digest, took.count());
  return violations == 0;
}

// One process for each job: schedules share nothing.
bool run_in_processes(const Arguments& arguments) {
  for (uint64_t job = 0; job < arguments.jobs; ++job) {
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) std::exit(run(arguments, job) ? 0 : 1);
  }
  bool ok = true;
  for (uint64_t job = 0; job < arguments.jobs; ++job) {
    int status = 0;
    wait(&status);
    ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  if (!arguments.valid) {
    fmt::print(stderr,
               "usage: grapnel-sim [--subject echo|jobset] [--seed FIRST] [--seeds COUNT] "
               "[--jobs N] [--verbose]\n");
    return 2;
  }
  // Beyond the highest level: a schedule is full of failures that are meant.
  log_setup(LogFormat::kText, arguments.verbose ? LogLevel::kInfo : static_cast<LogLevel>(99));
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const bool ok = arguments.jobs == 1 ? run(arguments, 0) : run_in_processes(arguments);
  return ok ? 0 : 1;
}
