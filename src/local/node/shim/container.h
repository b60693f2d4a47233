// One container of the pod, from its start until its end is recorded.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "local/node/shim/log_file.h"
#include "local/node/shim/util.h"

namespace grapnel::local::shim {

class Container {
 public:
  Container(std::string_view name, uint64_t attempt);
  ~Container();

  // Starts the process. False: it could not even be tried, failure() says why.
  bool start(std::string_view spec, int control);
  // When its fds are ready.
  void read_report();
  void read_logs();
  // After waitpid gave its status: takes what is left in the pipes and makes the record.
  void ended(int status);

  void signal(int number, bool whole_group);
  void stop(int number, bool whole_group, int64_t grace_ms);
  // Kills it when its grace is over. The milliseconds until then, or -1.
  int64_t enforce_deadline();

  bool is(std::string_view name, uint64_t attempt) const;
  bool is_named(std::string_view name) const { return name == name_; }
  bool is_over() const { return pid_ < 0 && state_ >= State::kExited; }
  State state() const { return state_; }
  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_; }
  bool has_namespaces() const { return has_root_; }
  int report_fd() const { return report_; }
  int output_fd(int stream) const { return output_[stream]; }
  int terminal_fd() const { return terminal_; }
  // Where its input is written to; -1: it has none.
  int input_fd() const { return terminal_ >= 0 ? terminal_ : stdin_; }
  void close_input();
  // From now on these also get what the container prints, as much as they accept at once. A
  // terminal uses only the first.
  bool attach(const int* outputs, size_t count);
  // The fields of kContainer, kStarted, kStartFailed or kExited.
  void describe(Message message, Buffer& into) const;

  Container* next = nullptr;

 private:
  void read_spec(std::string_view spec);
  void end_of_report();
  bool read_output(int stream);
  void record() const;
  void kill_session() const;
  void copy_output(int stream, const char* data, size_t size);
  void detach(int stream);
  uint64_t oom_kills() const;

  char* name_;
  uint64_t attempt_;
  State state_ = State::kStarting;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  int host_pid_ = 0;
  int report_ = -1;
  int output_[2] = {-1, -1};
  int terminal_ = -1;
  int stdin_ = -1;
  static constexpr size_t kMostAttached = 4;
  int attached_[kMostAttached][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
  bool wants_terminal_ = false;
  bool wants_stdin_ = false;
  bool own_pids_ = false;
  bool has_root_ = false;
  LogFile log_;
  LogStream streams_[2];
  int64_t started_at_ = 0;
  int64_t finished_at_ = 0;
  int64_t kill_at_ms_ = -1;
  int exit_code_ = 0;
  int exit_signal_ = 0;
  bool out_of_memory_ = false;
  char* oom_file_ = nullptr;
  uint64_t oom_before_ = 0;
  char* error_ = nullptr;
};

// fork with CLONE_… flags; `pidfd` gets one if not null.
pid_t fork_with(uint64_t flags, int* pidfd);

}  // namespace grapnel::local::shim
