#include "http/curl_loop.h"

#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace grapnel::http {
namespace asio = boost::asio;

struct CurlLoop::Socket {
  Socket(const Executor& executor, curl_socket_t handle)
      : fd(handle), descriptor(executor), pause(executor) {
    boost::system::error_code ignored;
    descriptor.assign(handle, ignored);
  }
  curl_socket_t fd;
  asio::posix::stream_descriptor descriptor;  // borrowed from libcurl: released, never closed
  asio::steady_timer pause;                   // see let_gather()
  int wanted = CURL_POLL_NONE;
  bool waits_read = false;
  bool waits_write = false;
  bool may_have_more = false;  // than the kernel shows: TLS has read ahead
  bool looks = false;          // whether it has
  bool stalled = false;        // readable, but its reader is behind
  bool gone = false;
  Transfer* owner = nullptr;
};

namespace {

constexpr size_t kReadAhead = 64UL << 10;
constexpr int kRecordsATurn = 16;  // then others may run
constexpr Duration kGathering = milliseconds(2);

CURLM* make_multi() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);  // once, before all else
  (void)ready;
  return curl_multi_init();
}

}  // namespace

CurlLoop::CurlLoop(Executor executor, size_t limit)
    : executor_(std::move(executor)), limit_(limit), multi_(make_multi()), timer_(executor_) {
  const auto socket_function = +[](CURL* easy, curl_socket_t fd, int what, void* self, void*) {
    static_cast<CurlLoop*>(self)->on_socket(easy, fd, what);
    return 0;
  };
  const auto timer_function = +[](CURLM*, long delay, void* self) {
    static_cast<CurlLoop*>(self)->on_timer(delay);
    return 0;
  };
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, socket_function);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, timer_function);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  // Multiplexing means HTTP/2, which this libcurl gets wrong.
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  if (limit_ != 0) curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(limit_));
}

CurlLoop::~CurlLoop() {
  curl_multi_cleanup(multi_);
  while (!sockets_.empty()) forget(sockets_.begin()->first);
}

void CurlLoop::submit(Transfer& transfer) {
  if (limit_ == 0 || active_ < limit_) return attach(transfer);
  transfer.place_ = waiting_.insert(waiting_.end(), &transfer);
  transfer.queued_ = true;
}

void CurlLoop::remove(Transfer& transfer) {
  if (transfer.queued_) {
    waiting_.erase(transfer.place_);
    transfer.queued_ = false;
  }
  if (!transfer.attached_) return;
  detach(transfer);
  start_next();
}

void CurlLoop::attach(Transfer& transfer) {
  ++active_;
  transfer.attached_ = true;
  curl_multi_add_handle(multi_, transfer.easy_);
}

void CurlLoop::detach(Transfer& transfer) {
  --active_;
  transfer.attached_ = false;
  curl_multi_remove_handle(multi_, transfer.easy_);
  for (auto& [fd, socket] : sockets_) {
    if (socket->owner == &transfer) socket->owner = nullptr;
  }
}

void CurlLoop::start_next() {
  while (!waiting_.empty() && active_ < limit_) {
    Transfer& next = *waiting_.front();
    waiting_.pop_front();
    next.queued_ = false;
    attach(next);
  }
}

void CurlLoop::on_socket(CURL* easy, curl_socket_t fd, int what) {
  if (what == CURL_POLL_REMOVE) return forget(fd);
  auto& socket = sockets_[fd];
  if (!socket) socket = std::make_shared<Socket>(executor_, fd);
  void* owner = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &owner);
  socket->owner = static_cast<Transfer*>(owner);
  socket->wanted = what;
  arm(socket, CURL_CSELECT_IN);
  arm(socket, CURL_CSELECT_OUT);
}

void CurlLoop::forget(curl_socket_t fd) {
  const auto found = sockets_.find(fd);
  if (found == sockets_.end()) return;
  found->second->gone = true;
  if (found->second->descriptor.is_open()) found->second->descriptor.release();
  sockets_.erase(found);
}

void CurlLoop::arm(const std::shared_ptr<Socket>& socket, int direction) {
  const bool reads = direction == CURL_CSELECT_IN;
  bool& waits = reads ? socket->waits_read : socket->waits_write;
  if (waits || socket->gone) return;
  if ((socket->wanted & (reads ? CURL_POLL_IN : CURL_POLL_OUT)) == 0) return;
  if (reads && socket->stalled) return;
  waits = true;
  socket->descriptor.async_wait(
      reads ? asio::posix::descriptor_base::wait_read : asio::posix::descriptor_base::wait_write,
      [loop = weak_from_this(), socket, direction, reads](const boost::system::error_code& error) {
        (reads ? socket->waits_read : socket->waits_write) = false;
        const auto self = loop.lock();
        if (error || socket->gone || !self) return;
        self->ready(socket, direction);
      });
}

void CurlLoop::ready(const std::shared_ptr<Socket>& socket, int direction) {
  const bool reads = direction == CURL_CSELECT_IN;
  // libcurl may have changed its mind after this wait began.
  if ((socket->wanted & (reads ? CURL_POLL_IN : CURL_POLL_OUT)) == 0) return;
  if (reads && socket->owner != nullptr && socket->owner->is_full()) {
    socket->stalled = true;
    return;
  }
  drive(socket->fd, direction);
  const bool may_gather = reads && socket->owner != nullptr && socket->owner->is_in_long_body();
  may_gather ? let_gather(socket) : arm(socket, direction);
}

// A list arrives record by record, as fast as the server writes it. Waiting a little and reading
// several at once costs a sixth less than waking up for each.
void CurlLoop::let_gather(const std::shared_ptr<Socket>& socket) {
  if (socket->waits_read || socket->gone) return;
  socket->waits_read = true;
  socket->pause.expires_after(kGathering);
  socket->pause.async_wait([loop = weak_from_this(), socket](const boost::system::error_code&) {
    socket->waits_read = false;
    if (const auto self = loop.lock()) self->arm(socket, CURL_CSELECT_IN);
  });
}

// Data that TLS has read ahead does not make the socket readable, and libcurl takes one record at a
// time. So as long as there was one, there may be another.
void CurlLoop::look_where_records_came() {
  for (const auto& [fd, socket] : sockets_) {
    if (read_by_.empty()) return;
    if (socket->owner == nullptr) continue;
    if (std::erase(read_by_, socket->owner->tls()) != 0) look_again(socket);
  }
  read_by_.clear();
}

void CurlLoop::look_again(const std::shared_ptr<Socket>& socket) {
  socket->may_have_more = true;
  if (socket->looks || socket->gone) return;
  socket->looks = true;
  asio::post(executor_, [loop = weak_from_this(), socket] {
    const auto self = loop.lock();
    if (!self) return;
    for (int round = 0; round < kRecordsATurn && socket->may_have_more && !socket->gone; ++round) {
      socket->may_have_more = false;
      self->ready(socket, CURL_CSELECT_IN);
    }
    socket->looks = false;
    if (socket->may_have_more) self->look_again(socket);
  });
}

void CurlLoop::read_ahead(void* ssl_context) {
  auto* context = static_cast<SSL_CTX*>(ssl_context);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadAhead);
  const auto message = [](int written, int, int type, const void*, size_t, SSL* ssl, void* self) {
    if (written != 0 || type != SSL3_RT_HEADER) return;
    auto& read_by = static_cast<CurlLoop*>(self)->read_by_;
    if (std::ranges::find(read_by, ssl) == read_by.end()) read_by.push_back(ssl);
  };
  SSL_CTX_set_msg_callback(context, message);
  SSL_CTX_set_msg_callback_arg(context, this);
}

void CurlLoop::resume(Transfer& transfer) {
  for (auto& [fd, socket] : sockets_) {
    if (socket->owner != &transfer || !socket->stalled) continue;
    socket->stalled = false;
    look_again(socket);
  }
}

void CurlLoop::on_timer(long delay) {
  if (delay < 0) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(std::chrono::milliseconds(delay));
  timer_.async_wait([loop = weak_from_this()](const boost::system::error_code& error) {
    const auto self = loop.lock();
    if (!error && self) self->drive(CURL_SOCKET_TIMEOUT, 0);
  });
}

void CurlLoop::drive(curl_socket_t fd, int events) {
  int running = 0;
  curl_multi_socket_action(multi_, fd, events, &running);
  collect();
  look_where_records_came();
}

void CurlLoop::collect() {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    void* owner = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
    const CURLcode code = message->data.result;  // the message dies with the removal
    auto& transfer = *static_cast<Transfer*>(owner);
    // If it were removed, libcurl would close a connection that was made with CONNECT_ONLY.
    if (code != CURLE_OK || transfer.kind_ != Transfer::Kind::kConnect) detach(transfer);
    transfer.finished(code);
  }
  start_next();
}

}  // namespace grapnel::http
