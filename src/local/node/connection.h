// A connection to a shim or to the anchor: packets with open files, on the event loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/fd.h"
#include "base/result.h"
#include "local/node/shim_protocol.h"

namespace grapnel::local {

class Connection {
 public:
  struct Packet {
    std::string bytes;
    std::vector<Fd> fds;
  };
  // To `shim.sock` in this directory, however long its name is.
  static Result<std::unique_ptr<Connection>> open(Executor executor, const std::string& directory);
  ~Connection();

  Result<> send(std::string_view bytes, const std::vector<int>& fds = {});
  // None: the other side is gone.
  Task<std::optional<Packet>> receive();

 private:
  struct Impl;
  explicit Connection(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // a Task that still waits has its part in it
};

}  // namespace grapnel::local
