// One HTTP/2 connection of a client: requests use it side by side. Inside http/ only.
#pragma once

#include <nghttp2/nghttp2.h>

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/async.h"
#include "base/result.h"
#include "http/channel.h"
#include "http/message.h"

namespace grapnel::http {

// Nothing throws or ends the connection inside nghttp2's callbacks: they note what happened and
// wake who waits for it.
class Http2Connection {
 public:
  struct Limits {
    size_t max_body;
    Duration idle;  // until it closes
  };
  Http2Connection(std::shared_ptr<Channel> channel, Limits limits);
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;
  ~Http2Connection();

  // Both ends have agreed on HTTP/2.
  static std::shared_ptr<Http2Connection> start(std::shared_ptr<Channel> channel, Limits limits);
  void close();
  bool takes_more() const;
  size_t under_way() const { return streams_.size(); }
  // Nothing: the server has not begun with it.
  static Task<std::optional<Result<Response>>> send(std::shared_ptr<Http2Connection> self,
                                                    const Request& request);

 private:
  // One request and its answer. Exactly one coroutine waits for it.
  struct Stream {
    Stream(const Executor& executor, const Request& asked) : request(asked), timer(executor) {}
    void end(std::optional<Error> why = {}) {
      done = true;
      if (!error) error = std::move(why);
      timer.cancel();
    }
    const Request& request;
    size_t body_sent = 0;
    Response answer{.status = 0};
    size_t header_bytes = 0;
    bool head_done = false;
    bool done = false;
    bool was_sent = false;     // at least in part
    bool was_refused = false;  // the server has not begun with it
    std::optional<Error> error;
    boost::asio::steady_timer timer;
  };
  struct Use;  // takes a stream off the connection, however its waiting ends

  static Task<> read_all(std::shared_ptr<Http2Connection> self);
  static Task<> write_all(std::shared_ptr<Http2Connection> self);
  Result<> begin(Stream& stream, int32_t& id);
  void give_up(int32_t id);
  void mind_idleness();
  void end_all(std::string_view why);
  Stream* find(int32_t id);

  void register_callbacks(nghttp2_session_callbacks* callbacks);
  void on_field(int32_t id, std::string_view name, std::string_view value);
  void on_head(int32_t id);
  void on_data(int32_t id, std::string_view piece);
  void on_close(int32_t id, uint32_t code);

  std::shared_ptr<Channel> channel_;
  Limits limits_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<int32_t, Stream*> streams_;
  Signal has_work_;  // for the writer
  bool open_ = true;
  bool doubtful_ = false;  // an answer did not come in time: it gets no more requests
};

}  // namespace grapnel::http
