#include "cli/forwarder.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <list>
#include <vector>

namespace grapnel::cli {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);

std::optional<uint16_t> port_of(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

Task<> send_to_pod(tcp::socket& from, kube::PortForward::Connection& to) {
  std::string piece(32UL << 10, '\0');
  for (;;) {
    const auto [error, count] = co_await from.async_read_some(asio::buffer(piece), kNoThrow);
    if (error) break;
    const auto sent = co_await to.write(std::string_view(piece).substr(0, count));
    if (!sent) co_return;
  }
  (void)co_await to.finish_writing();
}

// Until the pod's end is closed, or nobody here reads any more. That ends the other direction, too.
Task<> receive_from_pod(kube::PortForward::Connection& from, tcp::socket& to, Result<>& ended) {
  for (;;) {
    const auto piece = co_await from.read();
    if (!piece) ended = fail(piece.error());
    if (!piece || piece->empty()) break;
    const auto [error, count] =
        co_await asio::async_write(to, asio::buffer(piece->data(), piece->size()), kNoThrow);
    if (error) {
      co_await from.reset();
      break;
    }
  }
  boost::system::error_code ignored;
  to.shutdown(tcp::socket::shutdown_both, ignored);
}

}  // namespace

Result<PortPair> parse_port_pair(std::string_view text) {
  const auto colon = text.find(':');
  const auto remote = port_of(colon == std::string_view::npos ? text : text.substr(colon + 1));
  if (remote && colon == std::string_view::npos) return PortPair{*remote, *remote};
  if (remote && colon == 0) return PortPair{0, *remote};
  const auto local = remote ? port_of(text.substr(0, colon)) : std::nullopt;
  if (local) return PortPair{*local, *remote};
  return fail(Reason::kUsage,
              "'{}' is not LOCAL:REMOTE, with ports from 1 to 65535 (8080:80, 80, :80)", text);
}

struct Forwarder::Impl {
  Executor executor;
  kube::PortForward& forward;
  std::function<void(std::string_view)> note;
  std::list<tcp::acceptor> acceptors;
  std::list<Spawned> work;

  Task<> accept(tcp::acceptor& acceptor, uint16_t port) {
    for (;;) {
      auto [error, socket] = co_await acceptor.async_accept(kNoThrow);
      if (error) {
        co_await system_clock().sleep(milliseconds(100));  // no file descriptors left, perhaps
        continue;
      }
      std::erase_if(work, [](const Spawned& task) { return task.done(); });
      work.push_back(spawn(executor, carry(std::move(socket), port)));
    }
  }

  Task<> carry(tcp::socket socket, uint16_t port) {
    const auto connection = co_await forward.connect(port);
    if (!connection) co_return;
    Result<> ended;
    std::vector<Task<>> both;
    both.push_back(send_to_pod(socket, **connection));
    both.push_back(receive_from_pod(**connection, socket, ended));
    co_await all(std::move(both));
    if (!ended) note(ended.error().message);
  }
};

Forwarder::Forwarder(Executor executor, kube::PortForward& forward,
                     std::function<void(std::string_view)> note)
    : impl_(new Impl{executor, forward, std::move(note), {}, {}}) {}
Forwarder::~Forwarder() = default;

Result<uint16_t> Forwarder::listen(PortPair ports) {
  tcp::acceptor acceptor(impl_->executor);
  boost::system::error_code error;
  acceptor.open(tcp::v4(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind({asio::ip::address_v4::loopback(), ports.local}, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) {
    return fail(Reason::kSystem, "cannot listen on 127.0.0.1:{}: {}", ports.local, error.message());
  }
  const uint16_t port = acceptor.local_endpoint().port();
  impl_->acceptors.push_back(std::move(acceptor));
  impl_->work.push_back(
      spawn(impl_->executor, impl_->accept(impl_->acceptors.back(), ports.remote)));
  return port;
}

Task<> Forwarder::stop() {
  for (auto& task : impl_->work) task.cancel();
  for (auto& task : impl_->work) co_await task.join();
}

}  // namespace grapnel::cli
