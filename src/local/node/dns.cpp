#include "local/node/dns.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <random>

#include "base/log.h"
#include "local/node/held_questions.h"

namespace grapnel::local::dns {
namespace asio = boost::asio;
using asio::ip::tcp;
using asio::ip::udp;

namespace {

constexpr auto kQuiet = asio::as_tuple(asio::use_awaitable);
constexpr size_t kMostForwards = 256;
constexpr size_t kMostConnections = 64;
constexpr size_t kLargestByTcp = 65535;

class Count {
 public:
  explicit Count(size_t& count) : count_(count) { ++count_; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;
  ~Count() { --count_; }

 private:
  size_t& count_;
};

void pass_on_cancellation(const boost::system::error_code& error) {
  if (error == asio::error::operation_aborted) throw boost::system::system_error(error);
}

std::string with_length(const std::string& message) {
  std::string out;
  out += static_cast<char>(message.size() >> 8 & 255);
  out += static_cast<char>(message.size() & 255);
  return out + message;
}

Task<std::optional<std::string>> read_framed(tcp::socket& socket) {
  std::array<unsigned char, 2> head{};
  auto [error, size] = co_await asio::async_read(socket, asio::buffer(head), kQuiet);
  pass_on_cancellation(error);
  if (error) co_return std::nullopt;
  std::string message(size_t{head[0]} << 8 | head[1], '\0');
  auto [rest_error, rest] = co_await asio::async_read(socket, asio::buffer(message), kQuiet);
  pass_on_cancellation(rest_error);
  if (rest_error) co_return std::nullopt;
  co_return message;
}

Task<> ask_by_tcp(tcp::endpoint to, std::string question, std::optional<std::string>* answer) {
  tcp::socket socket(co_await this_executor());
  auto [error] = co_await socket.async_connect(to, kQuiet);
  pass_on_cancellation(error);
  if (error) co_return;
  const std::string framed = with_length(question);
  auto [write_error, written] = co_await asio::async_write(socket, asio::buffer(framed), kQuiet);
  pass_on_cancellation(write_error);
  if (!write_error) *answer = co_await read_framed(socket);
}

// A fresh port and number for each question: nobody can guess them and answer in their place.
Task<> ask_by_udp(udp::endpoint to, std::string question, std::optional<std::string>* answer) {
  static std::mt19937 numbers{std::random_device{}()};
  if (question.size() < 2) co_return;
  const std::string original = question.substr(0, 2);
  question[0] = static_cast<char>(numbers());
  question[1] = static_cast<char>(numbers());
  udp::socket socket(co_await this_executor(), udp::v4());
  boost::system::error_code connect_error;
  socket.connect(to, connect_error);
  if (connect_error) co_return;
  auto [error, sent] = co_await socket.async_send(asio::buffer(question), kQuiet);
  pass_on_cancellation(error);
  if (error) co_return;
  std::string reply(65535, '\0');
  while (true) {
    auto [read_error, size] = co_await socket.async_receive(asio::buffer(reply), kQuiet);
    pass_on_cancellation(read_error);
    if (read_error) co_return;
    if (size < 2 || reply.compare(0, 2, question, 0, 2) != 0) continue;
    reply.resize(size);
    reply.replace(0, 2, original);
    *answer = std::move(reply);
    co_return;
  }
}

}  // namespace

struct Server::Impl : std::enable_shared_from_this<Impl> {
  explicit Impl(Options options_in)
      : options(std::move(options_in)), held(options.executor, *options.clock, {}) {}
  Options options;
  HeldQuestions held;
  size_t turn = 0;
  size_t forwards = 0;
  size_t connections = 0;

  // None: it must be asked elsewhere, or wait.
  std::optional<std::string> answer_here(const Query& query, size_t largest);
  static std::string failure(const Query& query, Code code);
  static Task<std::string> answer_later(std::shared_ptr<Impl> self, Query query, std::string packet,
                                        uint32_t asker, bool by_tcp);
  static Task<std::string> forward(std::shared_ptr<Impl> self, Query query, std::string packet,
                                   bool by_tcp);
  static Task<> later_by_udp(std::shared_ptr<Impl> self, std::shared_ptr<udp::socket> socket,
                             udp::endpoint from, Query query, std::string packet);
  static Task<> serve_udp(std::shared_ptr<Impl> self, std::shared_ptr<udp::socket> socket);
  static Task<> serve_tcp(std::shared_ptr<Impl> self, std::shared_ptr<tcp::acceptor> acceptor);
  static Task<> serve_connection(std::shared_ptr<Impl> self, std::shared_ptr<tcp::socket> socket);
  static Task<> answer_connection(std::shared_ptr<Impl> self, std::shared_ptr<tcp::socket> socket);
};

std::string Server::Impl::failure(const Query& query, Code code) {
  return encode(query, {.code = code, .authoritative = false}, 512);
}

std::optional<std::string> Server::Impl::answer_here(const Query& query, size_t largest) {
  if (query.opcode != 0) return failure(query, Code::kNotImplemented);
  if (query.dns_class != 1) return failure(query, Code::kRefused);
  if (is_ours(query.name)) {
    const Table& table = options.names();
    if (table.is_awaited(query.name, options.clock->instant())) return std::nullopt;
    return encode(query, answer(table, query, turn++), largest);
  }
  if (options.upstreams.empty()) return failure(query, Code::kServerFailure);
  return std::nullopt;
}

Task<std::string> Server::Impl::forward(std::shared_ptr<Impl> self, Query query, std::string packet,
                                        bool by_tcp) {
  if (self->forwards >= kMostForwards) co_return failure(query, Code::kServerFailure);
  const Count counted(self->forwards);
  const std::vector<Upstream> upstreams = self->options.upstreams;
  for (const Upstream& upstream : upstreams) {
    boost::system::error_code error;
    const auto address = asio::ip::make_address_v4(upstream.address, error);
    if (error) continue;
    std::optional<std::string> reply;
    Clock& clock = *self->options.clock;
    co_await with_deadline(clock, clock.instant() + self->options.patience,
                           by_tcp
                               ? ask_by_tcp(tcp::endpoint(address, upstream.port), packet, &reply)
                               : ask_by_udp(udp::endpoint(address, upstream.port), packet, &reply));
    if (reply) co_return std::move(*reply);
  }
  co_return failure(query, Code::kServerFailure);
}

Task<std::string> Server::Impl::answer_later(std::shared_ptr<Impl> self, Query query,
                                             std::string packet, uint32_t asker, bool by_tcp) {
  if (!is_ours(query.name)) {
    co_return co_await forward(self, std::move(query), std::move(packet), by_tcp);
  }
  auto reply = co_await self->held.wait(asker, [impl = self.get(), query, by_tcp] {
    return impl->answer_here(query, by_tcp ? kLargestByTcp : query.largest);
  });
  // Who hears that a name does not exist believes it; who hears this asks again.
  co_return reply ? std::move(*reply) : failure(query, Code::kServerFailure);
}

Task<> Server::Impl::later_by_udp(std::shared_ptr<Impl> self, std::shared_ptr<udp::socket> socket,
                                  udp::endpoint from, Query query, std::string packet) {
  const uint32_t asker = from.address().to_v4().to_uint();
  const std::string reply =
      co_await answer_later(self, std::move(query), std::move(packet), asker, false);
  auto [error, size] = co_await socket->async_send_to(asio::buffer(reply), from, kQuiet);
  pass_on_cancellation(error);
}

Task<> Server::Impl::serve_udp(std::shared_ptr<Impl> self, std::shared_ptr<udp::socket> socket) {
  std::array<char, 4096> packet;
  while (true) {
    udp::endpoint from;
    auto [error, size] = co_await socket->async_receive_from(asio::buffer(packet), from, kQuiet);
    pass_on_cancellation(error);
    if (error) continue;
    const std::string_view bytes(packet.data(), size);
    auto query = parse_query(bytes);
    if (!query) continue;
    if (const auto reply = self->answer_here(*query, query->largest)) {
      auto [send_error, sent] = co_await socket->async_send_to(asio::buffer(*reply), from, kQuiet);
      pass_on_cancellation(send_error);
      continue;
    }
    spawn(self->options.executor,
          later_by_udp(self, socket, from, std::move(*query), std::string(bytes)))
        .detach();
  }
}

Task<> Server::Impl::answer_connection(std::shared_ptr<Impl> self,
                                       std::shared_ptr<tcp::socket> socket) {
  boost::system::error_code unknown;
  const tcp::endpoint from = socket->remote_endpoint(unknown);
  if (unknown) co_return;
  const uint32_t asker = from.address().to_v4().to_uint();
  while (auto packet = co_await read_framed(*socket)) {
    auto query = parse_query(*packet);
    if (!query) co_return;
    auto reply = self->answer_here(*query, kLargestByTcp);
    if (!reply) {
      reply = co_await answer_later(self, std::move(*query), std::move(*packet), asker, true);
    }
    const std::string framed = with_length(*reply);
    auto [error, size] = co_await asio::async_write(*socket, asio::buffer(framed), kQuiet);
    pass_on_cancellation(error);
    if (error) co_return;
  }
}

Task<> Server::Impl::serve_connection(std::shared_ptr<Impl> self,
                                      std::shared_ptr<tcp::socket> socket) {
  const Count counted(self->connections);
  Clock& clock = *self->options.clock;
  co_await with_deadline(clock, clock.instant() + seconds(30), answer_connection(self, socket));
}

Task<> Server::Impl::serve_tcp(std::shared_ptr<Impl> self,
                               std::shared_ptr<tcp::acceptor> acceptor) {
  while (true) {
    auto socket = std::make_shared<tcp::socket>(self->options.executor);
    auto [error] = co_await acceptor->async_accept(*socket, kQuiet);
    pass_on_cancellation(error);
    if (error) {  // out of files: others will close some
      co_await self->options.clock->sleep(milliseconds(100));
      continue;
    }
    if (self->connections >= kMostConnections) continue;
    spawn(self->options.executor, serve_connection(self, std::move(socket))).detach();
  }
}

Server::Server(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {}
Server::~Server() {
  release();
}

void Server::serve(Fd udp_fd, Fd tcp_fd) {
  const Executor executor = impl_->options.executor;
  auto socket = std::make_shared<udp::socket>(executor, udp::v4(), udp_fd.release());
  auto acceptor = std::make_shared<tcp::acceptor>(executor, tcp::v4(), tcp_fd.release());
  udp_ = spawn(executor, Impl::serve_udp(impl_, std::move(socket)));
  tcp_ = spawn(executor, Impl::serve_tcp(impl_, std::move(acceptor)));
}

void Server::names_changed() {
  impl_->held.look_again();
}

void Server::release() {
  impl_->held.release();
}

}  // namespace grapnel::local::dns
