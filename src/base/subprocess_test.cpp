#include "base/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace grapnel {
namespace {

using testing::HasSubstr;

struct SubprocessTest : testing::Test {
  boost::asio::io_context loop;
  Executor executor = loop.get_executor();

  Result<Finished> run(Command command) {
    Result<Finished> result = fail(Reason::kUnknown, "still waiting");
    auto task = spawn(executor, [](Command c, Result<Finished>& out) -> Task<> {
      out = co_await run_program(std::move(c));
    }(std::move(command), result));
    loop.restart();
    loop.run_for(seconds(20));
    EXPECT_TRUE(task.done());
    return result;
  }
};

bool process_exists(int pid) {
  return ::kill(pid, 0) == 0;
}

TEST_F(SubprocessTest, CollectsBothStreamsAndTheExitCode) {
  const auto done = run({.arguments = {"sh", "-c", "echo out; echo err >&2; exit 3"}});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->output, "out\n");
  EXPECT_EQ(done->errors, "err\n");
  EXPECT_EQ(done->exit_code, 3);
}

TEST_F(SubprocessTest, GivesInputAndEnvironment) {
  const auto done = run({.arguments = {"sh", "-c", "cat; printf %s \"$GREETING\""},
                         .environment = {{"GREETING", "hello"}},
                         .input = "in:"});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->output, "in:hello");
}

TEST_F(SubprocessTest, ReplacesAVariableOfOurs) {
  ::setenv("GRAPNEL_SUBPROCESS_TEST", "old", 1);
  const auto done = run({.arguments = {"sh", "-c",
                                       "env | grep -c '^GRAPNEL_SUBPROCESS_TEST='; "
                                       "printf %s \"$GRAPNEL_SUBPROCESS_TEST\""},
                         .environment = {{"GRAPNEL_SUBPROCESS_TEST", "new"}}});
  ::unsetenv("GRAPNEL_SUBPROCESS_TEST");
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->output, "1\nnew");
}

TEST_F(SubprocessTest, SaysWhichSignalEndedIt) {
  const auto done = run({.arguments = {"sh", "-c", "kill -TERM $$"}});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->exit_code, 128 + SIGTERM);
}

TEST_F(SubprocessTest, AProgramThatDoesNotExistIsAnError) {
  const auto done = run({.arguments = {"grapnel-no-such-program"}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().reason, Reason::kSystem);
  EXPECT_THAT(done.error().message, HasSubstr("grapnel-no-such-program"));
  EXPECT_FALSE(run({}).has_value());
}

TEST_F(SubprocessTest, KillsWhatTakesTooLongWithItsChildren) {
  const auto start = std::chrono::steady_clock::now();
  const auto done =
      run({.arguments = {"sh", "-c", "sleep 60 & sleep 60"}, .timeout = milliseconds(200)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().reason, Reason::kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
}

TEST_F(SubprocessTest, ReadsMuchOutputWholly) {
  const auto done = run({.arguments = {"sh", "-c", "head -c 3000000 /dev/zero"}});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->output.size(), 3000000U);
}

TEST_F(SubprocessTest, TooMuchOutputIsAnErrorAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const auto done = run({.arguments = {"cat", "/dev/zero"}, .max_output = 100000});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("more than 100000 bytes"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
}

TEST_F(SubprocessTest, IsNotHeldByAChildLeftBehind) {
  const auto start = std::chrono::steady_clock::now();
  const auto done = run({.arguments = {"sh", "-c", "sleep 15 & echo $!"}});
  ASSERT_TRUE(done) << done.error().message;
  const int left = std::atoi(done->output.c_str());
  ASSERT_GT(left, 0);
  EXPECT_TRUE(process_exists(left));
  ::kill(left, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
}

TEST_F(SubprocessTest, ManyAtOnce) {
  std::vector<int> codes(20, -1);
  auto task = spawn(executor, [](std::vector<int>& out) -> Task<> {
    std::vector<Task<>> tasks;
    for (size_t i = 0; i < out.size(); ++i) {
      tasks.push_back([](int code, int& result) -> Task<> {
        auto done = co_await run_program({.arguments = {"sh", "-c", fmt::format("exit {}", code)}});
        if (done) result = done->exit_code;
      }(static_cast<int>(i), out[i]));
    }
    co_await all(std::move(tasks));
  }(codes));
  loop.run_for(seconds(20));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(codes[static_cast<size_t>(i)], i);
}

// A pid as text, written by the program as its first act.
Task<> run_and_note(std::string path) {
  auto done = co_await run_program(
      {.arguments = {"sh", "-c", "echo $$ > \"$0\"; exec sleep 60", std::move(path)}});
  ADD_FAILURE() << "was to be cancelled";
}

int pid_in(const std::string& path) {
  int pid = 0;
  for (int i = 0; i < 500 && pid == 0; ++i) {
    if (FILE* file = std::fopen(path.c_str(), "r")) {
      if (std::fscanf(file, "%d", &pid) != 1) pid = 0;
      std::fclose(file);
    }
    if (pid == 0) ::usleep(10000);
  }
  return pid;
}

TEST_F(SubprocessTest, CancellingKillsAndReapsTheProgram) {
  const std::string path = fmt::format("{}subprocess_cancelled_{}", testing::TempDir(), ::getpid());
  std::remove(path.c_str());
  auto task = spawn(executor, run_and_note(path));
  loop.run_for(milliseconds(200));
  const int pid = pid_in(path);
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(process_exists(pid));
  task.cancel();
  loop.restart();
  loop.run_for(seconds(5));
  EXPECT_TRUE(task.done());
  EXPECT_FALSE(process_exists(pid));
  std::remove(path.c_str());
}

TEST_F(SubprocessTest, ALoopThatGoesAwayTakesTheProgramWithIt) {
  const std::string path = fmt::format("{}subprocess_abandoned_{}", testing::TempDir(), ::getpid());
  std::remove(path.c_str());
  int pid = 0;
  {
    boost::asio::io_context other;
    spawn(other.get_executor(), run_and_note(path)).detach();
    other.run_for(milliseconds(200));
    pid = pid_in(path);
    ASSERT_GT(pid, 0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);  // nobody is left to reap it but us
  EXPECT_FALSE(process_exists(pid));
  std::remove(path.c_str());
}

Task<> talk(Executor executor, std::vector<std::string> arguments, std::string input,
            Finished& out) {
  auto program = PipedProgram::start(executor, std::move(arguments));
  if (!program) {
    out.errors = program.error().message;
    co_return;
  }
  const auto written = co_await (*program)->write(input);
  if (!written) out.errors = written.error().message;
  (*program)->finish_writing();
  for (;;) {
    const auto piece = co_await (*program)->read();
    if (!piece || piece->empty()) break;
    out.output += *piece;
  }
  out.exit_code = co_await (*program)->wait();
}

struct PipedProgramTest : SubprocessTest {
  Finished talk_to(std::vector<std::string> arguments, std::string input) {
    Finished out;
    auto task = spawn(executor, talk(executor, std::move(arguments), std::move(input), out));
    loop.restart();
    loop.run_for(seconds(20));
    EXPECT_TRUE(task.done());
    return out;
  }
};

TEST_F(PipedProgramTest, ReadsAndWritesUntilItsEnd) {
  const auto done = talk_to({"sh", "-c", "tr a-z A-Z; exit 4"}, "hello");
  EXPECT_EQ(done.output, "HELLO");
  EXPECT_EQ(done.exit_code, 4);
}

TEST_F(PipedProgramTest, OneThatDoesNotReadEndsNobody) {
  const auto done = talk_to({"sh", "-c", "exec 0<&- 1>&-; exit 0"}, std::string(8 << 20, 'x'));
  EXPECT_THAT(done.errors, HasSubstr("Broken pipe"));
  EXPECT_EQ(done.exit_code, 0);
}

TEST_F(PipedProgramTest, OneThatDoesNotExistIsAnError) {
  EXPECT_THAT(talk_to({"/no/such/program"}, "").errors, HasSubstr("/no/such/program"));
}

}  // namespace
}  // namespace grapnel
