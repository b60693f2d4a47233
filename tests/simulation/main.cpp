// grapnel-sim: runs schedules of the simulator.
//
//   grapnel-sim --seeds 10000 --jobs 2   seeds 1 to 10000, in two processes
//   grapnel-sim --seed 4711 --verbose    one schedule, told step by step
//   grapnel-sim --subject jobset …       another subject than echo
//   grapnel-sim --server ours …          on the laptop's own API server instead of the model
//   grapnel-sim --probes …               how often each rare branch was taken; one that never was
//                                        is a failure
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/log.h"
#include "base/probe.h"
#include "tests/simulation/echo.h"
#include "tests/simulation/experiment.h"
#include "tests/simulation/jobset.h"
#include "tests/simulation/our_server.h"
#include "tests/simulation/world.h"

using namespace grapnel;
using namespace grapnel::simulation;

namespace {

std::unique_ptr<Subject> make_subject(std::string_view name) {
  if (name == "echo") return make_echo_subject();
  if (name == "jobset") return make_jobset_subject();
  if (name == "experiment") return make_experiment_subject();
  if (name == "jobset-lost-nodes") return make_jobset_subject({.blocks_and_loses_nodes = true});
  return nullptr;
}

struct Arguments {
  std::string_view subject = "echo";
  std::string_view server = "model";
  uint64_t first = 1;
  uint64_t count = 1;
  uint64_t jobs = 1;
  bool verbose = false;
  bool probes = false;
  bool valid = true;
};

Arguments parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto value = [&] { return std::strtoull(argv[++i], nullptr, 0); };
    if (name == "--verbose") {
      out.verbose = true;
    } else if (name == "--probes") {
      out.probes = true;
    } else if (i + 1 < argc && name == "--seed") {
      out.first = value();
    } else if (i + 1 < argc && name == "--seeds") {
      out.count = value();
    } else if (i + 1 < argc && name == "--jobs") {
      out.jobs = value();
    } else if (i + 1 < argc && name == "--subject") {
      out.subject = argv[++i];
    } else if (i + 1 < argc && name == "--server") {
      out.server = argv[++i];
    } else {
      out.valid = false;
    }
  }
  out.valid = out.valid && (out.server == "model" || out.server == "ours");
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
    WorldOptions options{.verbose = arguments.verbose};
    if (arguments.server == "ours") options.make_server = make_our_server;
    const Report report = World(arguments.first + i, *subject, std::move(options)).run();
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

// ---- rare branches ------------------------------------------------------------------------------

std::vector<uint64_t> hits() {
  std::vector<uint64_t> out;
  for (const Probe* probe : Probe::all()) out.push_back(probe->hits());
  return out;
}

// True when each was reached, but for those that this subject cannot reach.
bool judge_probes(const Arguments& arguments, const std::vector<uint64_t>& sums) {
  const auto unreachable = make_subject(arguments.subject)->never_reaches();
  const auto probes = Probe::all();
  bool ok = true;
  for (size_t i = 0; i < probes.size(); ++i) {
    const auto name = probes[i]->name();
    const auto excused = std::ranges::find(unreachable, name, &Subject::Unreachable::probe);
    if (excused == unreachable.end()) {
      if (sums[i] == 0) ok = false;
      fmt::print("{:>10} {}{}\n", sums[i], name, sums[i] == 0 ? "  <- never reached" : "");
    } else {
      fmt::print("{:>10} {}  (not expected: {})\n", sums[i], name, excused->why);
    }
  }
  return ok;
}

// ---- processes ----------------------------------------------------------------------------------

// One process for each job: schedules share nothing. Each sends its hits home through a pipe.
class Processes {
 public:
  bool start(const Arguments& arguments, uint64_t job) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
      const bool ok = run(arguments, job);
      const auto counted = hits();
      const auto size = static_cast<ssize_t>(counted.size() * sizeof(counted[0]));
      const bool sent = write(ends[1], counted.data(), static_cast<size_t>(size)) == size;
      std::exit(ok && sent ? 0 : 1);
    }
    close(ends[1]);
    pipes_.push_back(ends[0]);
    return true;
  }

  // True when all have ended well.
  bool wait_for_all(std::vector<uint64_t>& sums) {
    bool ok = true;
    for (const int from : pipes_) {
      std::vector<uint64_t> counted(sums.size());
      const auto size = static_cast<ssize_t>(counted.size() * sizeof(counted[0]));
      ok = read(from, counted.data(), static_cast<size_t>(size)) == size && ok;
      close(from);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += counted[i];
    }
    for (size_t i = 0; i < pipes_.size(); ++i) {
      int status = 0;
      wait(&status);
      ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return ok;
  }

 private:
  std::vector<int> pipes_;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  if (!arguments.valid) {
    fmt::print(stderr,
               "usage: grapnel-sim [--subject echo|jobset|jobset-lost-nodes|experiment] "
               "[--server model|ours] [--seed FIRST] "
               "[--seeds COUNT] [--jobs N] [--probes] [--verbose]\n");
    return 2;
  }
  // Beyond the highest level: a schedule is full of failures that are meant.
  log_setup(LogFormat::kText, arguments.verbose ? LogLevel::kInfo : static_cast<LogLevel>(99));
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  bool ok = true;
  std::vector<uint64_t> sums = hits();
  if (arguments.jobs == 1) {
    ok = run(arguments, 0);
    sums = hits();
  } else {
    Processes processes;
    for (uint64_t job = 0; job < arguments.jobs; ++job) ok = processes.start(arguments, job) && ok;
    ok = processes.wait_for_all(sums) && ok;
  }
  if (arguments.probes) ok = judge_probes(arguments, sums) && ok;
  return ok ? 0 : 1;
}
