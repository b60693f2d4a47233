// Commands that run beside a container's own process: kubectl exec, exec probes, hooks.
#pragma once

#include <sys/types.h>

#include "local/node/shim/util.h"

namespace grapnel::local::shim {

struct Exec {
  uint64_t id = 0;
  int client = -1;  // who asked; -1: it is gone
  pid_t pid = -1;
  int report = -1;
  int terminal = -1;
  char* error = nullptr;
  Exec* next = nullptr;
};

class Execs {
 public:
  struct Start {
    int client;
    uint64_t id;
    int pidfd;
    bool join;
    const int* fds;  // 0, 1, 2, as many as came along
    size_t fd_count;
  };
  bool start(const Start& how, std::string_view spec);
  void read_report(Exec* exec);
  bool reaped(pid_t pid, int status);
  void signal(uint64_t id, int number);
  void forget_client(int client);
  Exec* first() const { return first_; }
  // kExecStarted (number: PID), kExecFailed (failure()), kExecExited (number: wait status).
  static void tell(int client, Message message, uint64_t id, int number, int fd);

 private:
  void remove(Exec* exec);
  Exec* first_ = nullptr;
};

}  // namespace grapnel::local::shim
