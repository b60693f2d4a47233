// libcurl's multi-socket interface on an Asio executor: curl says which sockets and which point in
// time it waits for, the loop waits, and tells curl. Inside http/ only.
//
// libcurl's callbacks run inside its own calls, where nothing may be added or removed. So they only
// note what happened and wake the one coroutine that waits for the Transfer; it runs later.
#pragma once

#include <curl/curl.h>
#include <openssl/types.h>

#include <boost/asio/steady_timer.hpp>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/async.h"
#include "base/result.h"
#include "http/client.h"
#include "http/message.h"

namespace grapnel::http {

class CurlLoop;

// One request on its way. At most one coroutine waits for it at a time.
class Transfer {
 public:
  // For send(), for open(), and to connect only: then bytes go through receive() and transmit().
  enum class Kind { kWhole, kStream, kConnect };
  Transfer(std::shared_ptr<CurlLoop> loop, std::shared_ptr<const ClientOptions> options,
           Request request, Kind kind);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer();

  void offer_http2() { offers_http2_ = true; }         // for kConnect, before start()
  bool speaks_http2() const { return speaks_http2_; }  // the server has taken the offer
  Result<> start();
  // Until something changed or the deadline has passed. Check the state before each wait.
  Task<> wait(std::optional<Instant> deadline);
  // Takes the request off the wire, whatever its state.
  void abort(std::string why);

  bool head_done() const { return head_done_; }
  bool done() const { return done_; }
  bool has_body() const { return !body_.empty(); }
  int status() const { return status_; }
  Headers take_headers() { return std::move(headers_); }
  std::string take_body();
  // Once done(): why it failed, if it did.
  const std::optional<Error>& error() const { return error_; }
  Instant last_heard() const { return last_heard_; }
  // Of a connected kConnect, without blocking: CURLE_AGAIN when nothing can be done now.
  struct Moved {
    CURLcode code = CURLE_OK;
    size_t count = 0;
  };
  Moved receive(char* data, size_t size);
  Moved transmit(std::string_view data);
  const SSL* tls() const;  // of the connection it has now
  int release_socket();    // the loop stops watching it; libcurl still owns it

  Error failure(Reason reason, std::string_view what) const;
  Error late() const;

 private:
  friend class CurlLoop;
  Result<> configure();
  Result<> configure_target();
  Result<> configure_headers();
  void configure_tls();
  void configure_body();
  void configure_callbacks();
  void finished(CURLcode code);  // by the loop
  bool is_full() const;          // the reader is behind: leave the rest in the kernel
  bool is_in_long_body() const { return request_.pooled && head_done_ && !done_; }
  void wake() { timer_.cancel(); }
  size_t on_header(std::string_view line);
  size_t on_body(std::string_view piece);
  bool on_request_about_to_be_sent();

  std::shared_ptr<CurlLoop> loop_;
  std::shared_ptr<const ClientOptions> options_;
  Request request_;
  Kind kind_;
  CURL* easy_ = nullptr;
  curl_slist* header_list_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::list<Transfer*>::iterator place_;  // in the line, while queued_
  bool queued_ = false;                   // waits for a free connection
  bool attached_ = false;                 // libcurl has it
  bool offers_http2_ = false;
  bool speaks_http2_ = false;
  bool may_have_been_sent_ = false;
  bool head_done_ = false;
  bool done_ = false;
  bool too_large_ = false;
  int status_ = 0;
  size_t header_bytes_ = 0;
  Headers headers_;
  std::string body_;
  std::optional<Error> error_;
  Instant last_heard_;
  boost::asio::steady_timer timer_;
  char error_text_[CURL_ERROR_SIZE] = {};
};

class CurlLoop : public std::enable_shared_from_this<CurlLoop> {
 public:
  // At most `limit` transfers at once, the others wait in line; 0: no limit.
  CurlLoop(Executor executor, size_t limit);
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;
  ~CurlLoop();

  const Executor& executor() const { return executor_; }
  size_t active() const { return active_; }
  void submit(Transfer& transfer);
  void remove(Transfer& transfer);
  void resume(Transfer& transfer);  // its reader has caught up
  // Lets a TLS connection take what the kernel has at one go: API servers send records of 4 KB, and
  // OpenSSL would read each by two system calls.
  void read_ahead(void* ssl_context);

 private:
  struct Socket;
  void attach(Transfer& transfer);
  void detach(Transfer& transfer);
  void start_next();
  void on_socket(CURL* easy, curl_socket_t fd, int what);
  void on_timer(long milliseconds);
  void forget(curl_socket_t fd);
  void arm(const std::shared_ptr<Socket>& socket, int direction);
  void ready(const std::shared_ptr<Socket>& socket, int direction);
  void let_gather(const std::shared_ptr<Socket>& socket);
  void look_again(const std::shared_ptr<Socket>& socket);
  void look_where_records_came();
  void drive(curl_socket_t fd, int events);
  void collect();

  friend class Transfer;

  Executor executor_;
  size_t limit_;
  size_t active_ = 0;
  std::list<Transfer*> waiting_;
  CURLM* multi_;
  std::vector<const SSL*> read_by_;  // of the connections: those that have begun a record lately
  boost::asio::steady_timer timer_;
  std::unordered_map<curl_socket_t, std::shared_ptr<Socket>> sockets_;
};

}  // namespace grapnel::http
