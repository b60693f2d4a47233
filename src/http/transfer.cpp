#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "http/curl_loop.h"
#include "http/exchange.h"

namespace grapnel::http {
namespace {

constexpr size_t kMaxHeaderBytes = 256UL << 10;
// This much of a stream is buffered for a slow reader; the rest waits in the kernel, and then at
// the server. libcurl's own timers may still make it read what the kernel holds, hence the second
// limit.
constexpr size_t kStreamBuffer = 256UL << 10;
constexpr size_t kMaxStreamBuffer = 64UL << 20;
// A peer that acknowledges nothing for this long is gone.
constexpr unsigned kUserTimeoutMs = 45'000;

bool takes_body(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

Instant now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

curl_blob blob_of(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
}

// The parts of a URL that we look at.
struct Url {
  std::string scheme;
  std::string host;
  std::string port;  // as written, or empty
};

struct UrlHandle {
  CURLU* url = curl_url();
  UrlHandle() = default;
  UrlHandle(const UrlHandle&) = delete;
  UrlHandle& operator=(const UrlHandle&) = delete;
  ~UrlHandle() { curl_url_cleanup(url); }
  std::string get(CURLUPart part) const {
    char* text = nullptr;
    if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return "";
    std::string out = text;
    curl_free(text);
    return out;
  }
};

bool is_loopback(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host == "[::1]" ||
         host.ends_with(".localhost");
}

// `answer`, a bool, becomes true when the server takes the offer.
CURLcode offer_http2_in(CURL*, void* ssl_context, void* answer) {
  static constexpr unsigned char kProtocols[] = "\x02h2\x08http/1.1";
  auto* context = static_cast<SSL_CTX*>(ssl_context);
  SSL_CTX_set_alpn_protos(context, kProtocols, sizeof kProtocols - 1);
  SSL_CTX_set_app_data(context, answer);
  SSL_CTX_set_info_callback(context, [](const SSL* ssl, int where, int) {
    if ((where & SSL_CB_HANDSHAKE_DONE) == 0) return;
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl, &name, &size);
    *static_cast<bool*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl))) =
        std::string_view(reinterpret_cast<const char*>(name), size) == "h2";
  });
  return CURLE_OK;
}

}  // namespace

Transfer::Transfer(std::shared_ptr<CurlLoop> loop, std::shared_ptr<const ClientOptions> options,
                   Request request, Kind kind)
    : loop_(std::move(loop)),
      options_(std::move(options)),
      request_(std::move(request)),
      kind_(kind),
      last_heard_(now()),
      timer_(loop_->executor()) {}

Transfer::~Transfer() {
  loop_->remove(*this);
  curl_easy_cleanup(easy_);
  curl_slist_free_all(header_list_);
  curl_slist_free_all(connect_to_);
}

Result<> Transfer::start() {
  easy_ = curl_easy_init();
  if (easy_ == nullptr) return fail(Reason::kSystem, "libcurl cannot make a handle");
  if (auto ok = configure(); !ok) return ok;
  loop_->submit(*this);
  return {};
}

Task<> Transfer::wait(std::optional<Instant> deadline) {
  return wait_until(timer_, deadline);
}

void Transfer::abort(std::string why) {
  loop_->remove(*this);
  if (done_) return;
  done_ = true;
  error_ = failure(Reason::kCancelled, why);
  wake();
}

std::string Transfer::take_body() {
  std::string out = std::exchange(body_, {});
  if (attached_) loop_->resume(*this);
  // While we were not reading, the peer was not silent.
  if (out.size() >= kStreamBuffer) last_heard_ = now();
  return out;
}

Error Transfer::failure(Reason reason, std::string_view what) const {
  return failure_of(request_, reason, what, may_have_been_sent_);
}

Error Transfer::late() const {
  return http::late(request_, may_have_been_sent_);
}

bool Transfer::is_full() const {
  return kind_ == Kind::kStream && head_done_ && body_.size() >= kStreamBuffer;
}

void Transfer::finished(CURLcode code) {
  done_ = true;
  if (too_large_) {
    error_ = kind_ == Kind::kStream
                 ? failure(Reason::kTransport, "the stream came faster than it was read")
                 : failure(Reason::kDecode,
                           fmt::format("the answer is longer than {} bytes", options_->max_body));
  } else if (code == CURLE_ABORTED_BY_CALLBACK) {
    error_ = failure(Reason::kTransport, "the server closed the connection before it answered");
  } else if (code != CURLE_OK) {
    error_ = failure(Reason::kTransport,
                     error_text_[0] != '\0' ? error_text_ : curl_easy_strerror(code));
  } else if (!head_done_ && kind_ != Kind::kConnect) {
    // libcurl takes a head cut in the middle for a whole one.
    error_ = failure(Reason::kTransport, "the server closed the connection within the header");
  }
  wake();
}

Transfer::Moved Transfer::receive(char* data, size_t size) {
  Moved moved;
  moved.code = curl_easy_recv(easy_, data, size, &moved.count);
  return moved;
}

Transfer::Moved Transfer::transmit(std::string_view data) {
  Moved moved;
  moved.code = curl_easy_send(easy_, data.data(), data.size(), &moved.count);
  return moved;
}

const SSL* Transfer::tls() const {
  const curl_tlssessioninfo* info = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_TLS_SSL_PTR, &info);
  return info == nullptr ? nullptr : static_cast<const SSL*>(info->internals);
}

int Transfer::release_socket() {
  curl_socket_t fd = CURL_SOCKET_BAD;
  curl_easy_getinfo(easy_, CURLINFO_ACTIVESOCKET, &fd);
  loop_->forget(fd);
  return fd;
}

size_t Transfer::on_header(std::string_view line) {
  last_heard_ = now();
  header_bytes_ += line.size();
  if (header_bytes_ > kMaxHeaderBytes) return 0;
  const size_t taken = line.size();
  if (head_done_) return taken;  // trailers
  if (line.starts_with("HTTP/")) {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    status_ = static_cast<int>(status);
    headers_ = {};
    return taken;
  }
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r' || line.back() == ' ')) {
    line.remove_suffix(1);
  }
  if (line.empty()) {
    head_done_ = status_ >= 200;  // after 100 Continue another head follows
    if (head_done_ && kind_ == Kind::kStream) wake();
    return taken;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return taken;
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  headers_.add(std::string(line.substr(0, colon)), std::string(value));
  return taken;
}

size_t Transfer::on_body(std::string_view piece) {
  const size_t most = kind_ == Kind::kWhole ? options_->max_body : kMaxStreamBuffer;
  if (body_.size() + piece.size() > most) {
    too_large_ = true;
    return CURL_WRITEFUNC_ERROR;
  }
  last_heard_ = now();
  body_ += piece;
  if (kind_ == Kind::kStream) wake();
  return piece.size();
}

// libcurl repeats a request by itself when a kept-alive connection dies before an answer. That is
// right for a GET; a POST may have taken effect.
bool Transfer::on_request_about_to_be_sent() {
  if (may_have_been_sent_ && !is_safe(request_.method)) return false;
  may_have_been_sent_ = true;
  return true;
}

Result<> Transfer::configure() {
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_text_);
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L);  // a cancel does not wait for a name lookup
  curl_easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy_, CURLOPT_UPLOAD_BUFFERSIZE,
                   16384L);  // not 64 KB for each that is under way
  curl_easy_setopt(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPIDLE, 30L);
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPINTVL, 10L);
  if (kind_ == Kind::kStream && !request_.pooled) {
    curl_easy_setopt(easy_, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy_, CURLOPT_FORBID_REUSE, 1L);
  }
  if (kind_ == Kind::kConnect) {
    curl_easy_setopt(easy_, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(easy_, CURLOPT_HTTPPROXYTUNNEL, 1L);
  }
  configure_callbacks();
  configure_tls();
  if (auto ok = configure_target(); !ok) return ok;
  if (auto ok = configure_headers(); !ok) return ok;
  configure_body();
  return {};
}

Result<> Transfer::configure_target() {
  const UrlHandle url;
  if (curl_url_set(url.url, CURLUPART_URL, request_.target.c_str(), CURLU_PATH_AS_IS) !=
          CURLUE_OK ||
      !is_one_line(request_.target)) {
    return fail(Reason::kUsage, "not a URL: '{}'", request_.target);
  }
  const std::string scheme = url.get(CURLUPART_SCHEME);
  const std::string host = url.get(CURLUPART_HOST);
  if (scheme != "http" && scheme != "https") {
    return fail(Reason::kUsage, "'{}': the scheme must be http or https", request_.target);
  }
  curl_easy_setopt(easy_, CURLOPT_URL, request_.target.c_str());
  if (!options_->server_name.empty() && scheme == "https") {
    // The only way to tell libcurl a name for SNI and verification: ask for that host, and connect
    // to the other.
    const std::string port = url.get(CURLUPART_PORT);
    const std::string authority = port.empty() ? host : host + ":" + port;
    if (!request_.headers.has("Host")) request_.headers.add("Host", authority);
    curl_url_set(url.url, CURLUPART_HOST, options_->server_name.c_str(), 0);
    curl_easy_setopt(easy_, CURLOPT_URL, url.get(CURLUPART_URL).c_str());
    const std::string route = fmt::format("::{}:{}", host, port);
    connect_to_ = curl_slist_append(nullptr, route.c_str());
    curl_easy_setopt(easy_, CURLOPT_CONNECT_TO, connect_to_);
  }
  if (!options_->proxy_url.empty()) {
    curl_easy_setopt(easy_, CURLOPT_PROXY, options_->proxy_url.c_str());
    curl_easy_setopt(easy_, CURLOPT_NOPROXY, "");  // an explicit proxy is for every host
  } else if (is_loopback(host)) {
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
  }
  return {};
}

Result<> Transfer::configure_headers() {
  const auto append = [this](const std::string& line) {
    header_list_ = curl_slist_append(header_list_, line.c_str());
  };
  for (const auto& [name, value] : request_.headers) {
    if (!is_field(name, value)) {
      return fail(Reason::kUsage, "header '{}' cannot be sent", name);
    }
    append(value.empty() ? name + ";" : fmt::format("{}: {}", name, value));
  }
  // libcurl's own defaults for these do not fit an API.
  if (!request_.headers.has("Expect")) append("Expect:");
  if (!request_.headers.has("Content-Type")) append("Content-Type:");
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, header_list_);
  return {};
}

void Transfer::configure_tls() {
  const ClientOptions& o = *options_;
  // With both set, libcurl would trust the system's folder in addition to our own authority, and
  // would parse the system's file again for every connection.
  curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
  curl_easy_setopt(easy_, CURLOPT_SSL_SESSIONID_CACHE, 0L);
  if (!o.ca_pem.empty()) {
    curl_blob blob = blob_of(o.ca_pem);
    curl_easy_setopt(easy_, CURLOPT_CAINFO_BLOB, &blob);
  }
  if (!o.client_certificate_pem.empty()) {
    curl_blob certificate = blob_of(o.client_certificate_pem);
    curl_blob key = blob_of(o.client_key_pem);
    curl_easy_setopt(easy_, CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(easy_, CURLOPT_SSLKEY_BLOB, &key);
  }
  if (kind_ != Kind::kConnect) {
    const auto context = +[](CURL*, void* made, void* loop) {
      static_cast<CurlLoop*>(loop)->read_ahead(made);
      return CURLE_OK;
    };
    curl_easy_setopt(easy_, CURLOPT_SSL_CTX_FUNCTION, context);
    curl_easy_setopt(easy_, CURLOPT_SSL_CTX_DATA, loop_.get());
  } else if (offers_http2_) {
    // With libcurl's own option for this, libcurl would speak HTTP/2 itself.
    curl_easy_setopt(easy_, CURLOPT_SSL_ENABLE_ALPN, 0L);
    curl_easy_setopt(easy_, CURLOPT_SSL_CTX_FUNCTION, &offer_http2_in);
    curl_easy_setopt(easy_, CURLOPT_SSL_CTX_DATA, &speaks_http2_);
  }
  if (o.insecure_skip_verify) {
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, 0L);
  }
}

void Transfer::configure_body() {
  if (request_.method == "HEAD") {
    curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
    return;
  }
  if (takes_body(request_.method) || !request_.body.empty()) {
    curl_easy_setopt(easy_, CURLOPT_POST, 1L);
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request_.body.size()));
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, request_.body.data());
  }
  curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
}

void Transfer::configure_callbacks() {
  const auto header = +[](char* data, size_t size, size_t count, void* self) {
    return static_cast<Transfer*>(self)->on_header({data, size * count});
  };
  const auto body = +[](char* data, size_t size, size_t count, void* self) {
    return static_cast<Transfer*>(self)->on_body({data, size * count});
  };
  const auto before_request = +[](void* self, char*, char*, int, int) {
    return static_cast<Transfer*>(self)->on_request_about_to_be_sent()
               ? static_cast<int>(CURL_PREREQFUNC_OK)
               : static_cast<int>(CURL_PREREQFUNC_ABORT);
  };
  const auto socket_options = +[](void*, curl_socket_t fd, curlsocktype) {
    const unsigned timeout = kUserTimeoutMs;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
    fcntl(fd, F_SETFD, FD_CLOEXEC);  // not for the processes that we start
    return static_cast<int>(CURL_SOCKOPT_OK);
  };
  // Connections outlive the transfer, so this one goes to the loop.
  const auto close_socket = +[](void* loop, curl_socket_t fd) {
    static_cast<CurlLoop*>(loop)->forget(fd);
    return ::close(fd);
  };
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_PREREQFUNCTION, before_request);
  curl_easy_setopt(easy_, CURLOPT_PREREQDATA, this);
  curl_easy_setopt(easy_, CURLOPT_SOCKOPTFUNCTION, socket_options);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETDATA, loop_.get());
}

}  // namespace grapnel::http
