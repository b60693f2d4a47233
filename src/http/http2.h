// Many requests at once over few connections: HTTP/2 with nghttp2, for when more requests are under
// way than is worth opening connections for. Inside http/ only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/result.h"
#include "http/client.h"
#include "http/message.h"

namespace grapnel::http {

class Http2Connection;

// Connections to one server, the one of its first request. It connects when it is first asked.
class Http2Pool : public std::enable_shared_from_this<Http2Pool> {
 public:
  // It closes a connection that nobody has used for so long.
  Http2Pool(Executor executor, std::shared_ptr<const ClientOptions> options,
            Duration idle = seconds(30));
  Http2Pool(const Http2Pool&) = delete;
  Http2Pool& operator=(const Http2Pool&) = delete;
  ~Http2Pool();

  // Nothing: the server has not begun with this one, and it has to go another way, because the
  // server does not speak HTTP/2, cannot be reached, or takes no more.
  Task<std::optional<Result<Response>>> send(const Request& request);

 private:
  using Choice = std::shared_ptr<Http2Connection>;
  static Task<std::optional<Result<Response>>> send_by(std::shared_ptr<Http2Pool> self,
                                                       const Request& request);
  static Task<> connect(std::weak_ptr<Http2Pool> weak, Executor executor, ClientOptions options,
                        Request request);
  Choice least_busy();
  bool may_connect() const;
  void start_connecting();

  Executor executor_;
  std::shared_ptr<const ClientOptions> options_;
  Duration idle_;
  std::string origin_;
  bool is_spoken_ = true;  // as far as we know
  Instant not_before_{};   // after a failure
  size_t asking_ = 0;      // requests that wait, for a connection or on one for their answer
  size_t connecting_ = 0;
  Signal connected_;  // or not
  std::vector<Spawned> connectors_;
  std::vector<Choice> connections_;
};

}  // namespace grapnel::http
