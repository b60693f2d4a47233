// A connected socket as two byte streams, plain here and with TLS in tls.h. The server and the
// WebSocket are built on it. Inside http/ only.
//
// Nothing is buffered while a channel is idle: it waits until the socket is readable and then reads
// into a buffer that all channels share, so ten thousand idle connections cost little.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/async.h"

namespace grapnel::http {

using ErrorCode = boost::system::error_code;

// One reader and one writer at a time, each a coroutine of an owner that outlives it. A cancelled
// read loses nothing; after a cancelled write the stream is broken.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(const Executor& executor, int fd);  // takes the descriptor, which does not block
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel();

  struct Read {
    ErrorCode error;
    size_t count = 0;  // 0 without an error: the end
  };
  Task<Read> read(char* data, size_t size);
  Task<Read> append_to(std::string& buffer, size_t most);
  void unread(std::string bytes);  // what was read ahead comes first again
  Task<ErrorCode> write(std::string_view data);
  Task<ErrorCode> handshake();
  Task<> finish_writing();  // says goodbye; the other end sees a clean end
  Task<> wait_for_hangup();
  virtual void close();  // at once; ends whoever waits

  // From that moment on waits end with timed_out, until it is moved or taken away.
  void set_deadline(Instant deadline);
  void clear_deadline() { deadline_.reset(); }

  const Executor& executor() const { return executor_; }
  // Goes when the channel goes: the server's count of connections hangs on it.
  void hold(std::shared_ptr<void> lease) { lease_ = std::move(lease); }

 protected:
  enum class Want { kNothing, kRead, kWrite };
  struct Step {
    Want want = Want::kNothing;
    ErrorCode error = {};
    size_t count = 0;
  };
  virtual Step try_read(char* data, size_t size);
  virtual Step try_write(std::string_view data);
  virtual Step try_handshake() { return {}; }
  virtual Step try_goodbye() { return {}; }
  bool is_open() const { return descriptor_.is_open(); }
  int fd() { return descriptor_.native_handle(); }

  Executor executor_;
  boost::asio::posix::stream_descriptor descriptor_;

 private:
  Task<ErrorCode> wait(Want want);
  Task<> let_others_run();
  void arm_timer();

  std::shared_ptr<void> lease_;
  std::string unread_;
  std::optional<Instant> deadline_;
  std::optional<Instant> armed_for_;
  bool expired_ = false;
  unsigned streak_ = 0;  // steps in a row without a wait
  boost::asio::steady_timer timer_;
};

}  // namespace grapnel::http
