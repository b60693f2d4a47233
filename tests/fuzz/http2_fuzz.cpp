// What a server says on a connection of HTTP/2 on which two requests are under way.
#include <sys/socket.h>
#include <unistd.h>

#include "http/http2_connection.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

namespace {

using Answer = std::optional<Result<http::Response>>;

Task<> ask(std::shared_ptr<http::Http2Connection> connection, std::string method, int& ended) {
  http::Request request{
      .method = method, .target = "https://server/path", .body = method == "GET" ? "" : "body"};
  const Answer answer = co_await http::Http2Connection::send(connection, request);
  ++ended;
  if (!answer) co_return;
  if (*answer) {
    fuzz::require((*answer)->status >= 200, "a final answer");
  } else {
    const bool is_write = method != "GET";
    fuzz::require(!answer->error().ambiguous || is_write, "only a write is ambiguous");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  boost::asio::io_context loop;
  const auto connection =
      http::Http2Connection::start(std::make_shared<http::Channel>(loop.get_executor(), ends[0]),
                                   {.max_body = 1 << 20, .idle = seconds(30)});
  int ended = 0;
  spawn(loop.get_executor(), ask(connection, "GET", ended)).detach();
  spawn(loop.get_executor(), ask(connection, "POST", ended)).detach();
  loop.poll();
  if (::send(ends[1], data, size, MSG_NOSIGNAL) < 0) fuzz::require(size == 0, "room for all of it");
  ::shutdown(ends[1], SHUT_WR);
  loop.run_for(std::chrono::seconds(5));
  fuzz::require(ended == 2, "every request ends with the connection");
  ::close(ends[1]);
  return 0;
}
