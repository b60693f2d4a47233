// Pipes, terminals and sockets from the node, on the event loop.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/fd.h"
#include "base/result.h"
#include "local/apiserver/pod_backend.h"

namespace grapnel::local::kubelet {

class FdStream final : public PodConnection {
 public:
  FdStream(Executor executor, Fd fd);
  ~FdStream() override;

  Task<Result<std::string>> read() override;  // empty at the end
  Task<Result<>> write(std::string_view data) override;
  Task<> close() override;
  void finish_writing() override;  // of a socket
  int fd() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // a Task that still waits has its part in it
};

}  // namespace grapnel::local::kubelet
