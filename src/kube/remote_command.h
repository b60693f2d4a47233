// The client's end of an exec: a command in a pod, its standard streams and its exit code.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/result.h"
#include "http/websocket.h"

namespace grapnel::kube {

class RemoteCommand {
 public:
  // A WebSocket that Client::exec() opened.
  explicit RemoteCommand(std::unique_ptr<http::WebSocket> socket) : socket_(std::move(socket)) {}

  // What came next: a piece of output or of errors, or the end with its exit code.
  struct Event {
    std::string output;
    std::string errors;
    std::optional<int> exit_code;
  };
  // An Error when the command could not be run, or the connection broke before its end.
  Task<Result<Event>> read();

  Task<Result<>> write_input(std::string_view data);
  Task<Result<>> close_input();
  Task<Result<>> resize(int width, int height);  // of its terminal
  Task<> close() { return socket_->close(); }

 private:
  std::unique_ptr<http::WebSocket> socket_;
};

// How a command ended, from the Status that a server sends at its end.
Result<int> exit_code_of(std::string_view status);

}  // namespace grapnel::kube
