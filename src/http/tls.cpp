#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <climits>

#include "http/openssl.h"

namespace grapnel::http {
namespace {

namespace asio = boost::asio;

using Session = std::unique_ptr<SSL, OpenSslDeleter<SSL_free>>;

Bio reader_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A socket BIO that does not raise SIGPIPE: OpenSSL's own uses write().
int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::send(static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))),
                               data, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::recv(static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))),
                               data, static_cast<size_t>(size), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(count);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

BIO* make_socket_bio(int fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_ctrl(m, bio_control);
    return m;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

class TlsChannel final : public Channel {
 public:
  TlsChannel(const Executor& executor, int fd, SSL_CTX* context)
      : Channel(executor, fd), ssl_(SSL_new(context)) {
    BIO* bio = make_socket_bio(fd);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_accept_state(ssl_.get());
  }

 protected:
  Step try_handshake() override {
    ERR_clear_error();
    return step_of(SSL_do_handshake(ssl_.get()), 0);
  }
  Step try_read(char* data, size_t size) override {
    ERR_clear_error();
    size_t count = 0;
    const int result = SSL_read_ex(ssl_.get(), data, size, &count);
    return step_of(result, count);
  }
  Step try_write(std::string_view data) override {
    ERR_clear_error();
    size_t count = 0;
    const int result = SSL_write_ex(ssl_.get(), data.data(), data.size(), &count);
    return step_of(result, count);
  }
  Step try_goodbye() override {
    ERR_clear_error();
    if (broken_ || SSL_is_init_finished(ssl_.get()) == 0) return {};
    const int result = SSL_shutdown(ssl_.get());
    return result >= 0 ? Step{} : step_of(result, 0);
  }

 private:
  Step step_of(int result, size_t count) {
    if (result > 0) return {.count = count};
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {.want = Want::kRead};
      case SSL_ERROR_WANT_WRITE:
        return {.want = Want::kWrite};
      case SSL_ERROR_ZERO_RETURN:
        return {};
      default:
        broken_ = true;  // OpenSSL forbids a goodbye after this
        return {.error = asio::error::connection_reset};
    }
  }

  Session ssl_;
  bool broken_ = false;
};

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kOurs, sizeof kOurs - 1, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Result<> use_certificate(SSL_CTX* context, const ServerTlsOptions& options) {
  const Bio chain = reader_of(options.certificate_pem);
  const Certificate first(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
  if (!first || SSL_CTX_use_certificate(context, first.get()) != 1) {
    return fail(Reason::kDecode, "the certificate is not valid PEM: {}", last_tls_problem());
  }
  while (X509* next = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)) {
    SSL_CTX_add0_chain_cert(context, next);
  }
  const Bio key_text = reader_of(options.key_pem);
  const Key key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (!key) return fail(Reason::kDecode, "the key is not valid PEM: {}", last_tls_problem());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return fail(Reason::kDecode, "the key does not belong to the certificate");
  }
  ERR_clear_error();
  return {};
}

Result<> trust_clients_of(SSL_CTX* context, const std::string& authorities) {
  const Bio text = reader_of(authorities);
  int count = 0;
  while (X509* next = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) {
    const Certificate authority(next);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get());
    SSL_CTX_add_client_CA(context, authority.get());
    ++count;
  }
  if (count == 0) return fail(Reason::kDecode, "no certificate among the client authorities");
  ERR_clear_error();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

}  // namespace

std::string last_tls_problem() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "unknown" : text;
}

Result<TlsContext> make_server_context(const ServerTlsOptions& options) {
  TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return fail(Reason::kSystem, "no TLS context: {}", last_tls_problem());
  SSL_CTX* const c = context.get();
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                          SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_set_alpn_select_cb(c, choose_protocol, nullptr);
  if (auto ok = use_certificate(c, options); !ok) return fail(ok.error());
  if (!options.client_ca_pem.empty()) {
    if (auto ok = trust_clients_of(c, options.client_ca_pem); !ok) return fail(ok.error());
  }
  return context;
}

std::shared_ptr<Channel> make_tls_channel(const Executor& executor, int fd,
                                          const TlsContext& context) {
  return std::make_shared<TlsChannel>(executor, fd, context.get());
}

}  // namespace grapnel::http
