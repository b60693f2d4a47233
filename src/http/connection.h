// One client of the server: requests one after another on a kept-alive connection, and the Exchange
// through which a handler answers. Inside http/ only.
#pragma once

#include <memory>
#include <string>

#include "http/channel.h"
#include "http/server.h"

namespace grapnel::http {

// What a connection sees of its server.
struct ServerShared {
  ServerOptions options;
  Handler handler;
  bool stopping = false;
};

class Connection final : public Exchange {
 public:
  Connection(std::shared_ptr<const ServerShared> server, std::shared_ptr<Channel> channel,
             std::string peer);
  ~Connection() override;

  // Serves until the client or the server is done with it.
  Task<> run();
  // Between two requests: may be closed without harm.
  bool is_idle() const { return idle_; }
  void close();

  const Request& request() const override { return request_; }
  std::string_view peer_address() const override { return peer_; }
  Task<Result<>> respond(Response response) override;
  Task<Result<>> begin(Response head) override;
  Task<Result<>> write(std::string_view chunk) override;
  Task<Result<>> finish() override;
  Task<Result<std::unique_ptr<WebSocket>>> accept_websocket(std::string subprotocol) override;
  Task<Result<std::unique_ptr<ByteStream>>> upgrade(Headers headers) override;
  Task<> closed() override;

 private:
  // How far the answer to the current request is.
  enum class Answer { kNone, kStarted, kWhole, kBroken, kUpgraded };

  Task<bool> wait_for_request();
  Task<bool> read_request();
  Task<bool> read_more(std::string_view when_late);
  Task<> refuse(int status, std::string reason);
  Task<> call_handler();
  Task<> say_goodbye();
  Task<Result<>> send(std::string_view bytes);
  Result<> claim();
  bool answer_has_body(int status) const;
  std::string head_of(const Response& response, std::optional<size_t> length) const;

  std::shared_ptr<const ServerShared> server_;
  std::shared_ptr<Channel> channel_;
  std::string peer_;
  std::string buffer_;  // read, not yet understood
  Request request_;
  Answer answer_ = Answer::kNone;
  bool idle_ = false;
  bool keep_alive_ = true;
  bool http_1_0_ = false;
  bool has_body_ = false;
  bool chunked_ = false;
};

}  // namespace grapnel::http
