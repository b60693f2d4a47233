// Runs other programs without blocking the loop: to their end (run_program), or beside us with
// their streams connected to us (PipedProgram).
//
// Cancelling the Task, or its timeout, kills the program. Unless the program shares our terminal,
// this also kills all that it started. A program that leaves children behind does not block us: we
// stop reading when the program itself has ended.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/async.h"
#include "base/result.h"

namespace grapnel {

struct Command {
  std::vector<std::string> arguments;  // the program first, found by PATH when it has no slash
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
  std::string input;                                             // its standard input
  bool share_input = false;   // instead of `input`: our own standard input, for a terminal
  bool share_errors = false;  // its standard error goes to ours and is not collected
  Duration timeout = seconds(30);
  size_t max_output = 4UL << 20;  // of each stream; more is an error
};

struct Finished {
  int exit_code = 0;  // 128 + the signal when one ended it
  std::string output;
  std::string errors;
};

// An Error only when it could not be started, or was stopped before its end. What its exit code
// means is up to the caller.
Task<Result<Finished>> run_program(Command command);

// A program that reads what we write and whose output we read; its errors go to ours. Destroying it
// kills it.
class PipedProgram {
 public:
  static Result<std::unique_ptr<PipedProgram>> start(Executor executor,
                                                     std::vector<std::string> arguments);
  ~PipedProgram();

  Task<Result<std::string>> read();  // empty at the end
  Task<Result<>> write(std::string_view data);
  void finish_writing();
  Task<int> wait();  // its exit code, as above

 private:
  struct Impl;
  explicit PipedProgram(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace grapnel
