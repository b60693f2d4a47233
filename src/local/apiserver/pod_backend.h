// What the server needs from the node to serve users of running pods. The node implements it;
// without a node the server refuses with a clear message.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "base/result.h"
#include "document/json.h"
#include "http/server.h"

namespace grapnel::local {

struct PodLogRequest {
  std::string ns;
  std::string pod;
  std::string container;
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<int64_t> tail_lines;
  std::optional<int64_t> since_seconds;
  std::optional<Time> since_time;
  std::optional<int64_t> limit_bytes;
};

struct PodExecRequest {
  std::string ns;
  std::string pod;
  std::string container;
  std::vector<std::string> command;  // empty: attach to what runs
  bool stdin_open = false;
  bool stdout_open = false;
  bool stderr_open = false;
  bool tty = false;
};

// The streams of an exec or attach, whatever protocol the client speaks. Written by the backend.
class PodStreams {
 public:
  virtual ~PodStreams() = default;
  struct Resize {
    int width = 0;
    int height = 0;
  };
  struct Input {
    std::string data;              // of standard input
    std::optional<Resize> resize;  // or a new size of the terminal
    bool closed = false;           // no more input will come
  };
  virtual Task<Result<Input>> read() = 0;
  virtual Task<Result<>> write_stdout(std::string_view data) = 0;
  virtual Task<Result<>> write_stderr(std::string_view data) = 0;
};

// How it ended.
struct PodExit {
  int code = 0;
  std::string error;  // it could not be run at all
};

struct PodName {
  std::string ns;
  std::string pod;
};

// What a pod uses now.
struct ContainerUsage {
  std::string name;
  uint64_t nanocores = 0;
  uint64_t bytes = 0;
  Duration window{};  // that the CPU was measured over
};
struct PodUsage {
  std::string ns;
  std::string pod;
  Time at{};
  std::vector<ContainerUsage> containers;
};

// To a port inside a pod.
class PodConnection : public http::ByteStream {
 public:
  virtual void finish_writing() = 0;  // the pod sees the end, and may go on answering
};

class PodBackend {
 public:
  virtual ~PodBackend() = default;
  // Writes the log through the exchange it is given: begin(), write()…, finish().
  virtual Task<Result<>> logs(PodLogRequest request, http::Exchange& exchange) = 0;
  virtual Task<Result<PodExit>> exec(PodExecRequest request, PodStreams& streams) = 0;
  virtual Task<Result<std::unique_ptr<PodConnection>>> connect(std::string ns, std::string pod,
                                                               uint16_t port) = 0;
  // Of those that run.
  virtual Task<std::vector<PodUsage>> usage(std::vector<PodName> pods) = 0;
  // Pods that are gone and whose logs can still be asked for: metadata and status.phase.
  virtual std::vector<Json> kept_logs() = 0;
};

}  // namespace grapnel::local
