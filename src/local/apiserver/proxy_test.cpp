#include "local/apiserver/proxy.h"

#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

TEST(ProxyTarget, HasASchemeANameAndAPort) {
  EXPECT_EQ(parse_proxy_target("web"), (ProxyTarget{.name = "web"}));
  EXPECT_EQ(parse_proxy_target("web:80"), (ProxyTarget{.name = "web", .port = "80"}));
  EXPECT_EQ(parse_proxy_target("http:web:http"),
            (ProxyTarget{.scheme = "http", .name = "web", .port = "http"}));
  EXPECT_EQ(parse_proxy_target("https:web:"), (ProxyTarget{.scheme = "https", .name = "web"}));
}

TEST(RequestForPod, CarriesNoCredentialsAndNothingOfTheConnection) {
  const http::Request request{.method = "POST",
                              .headers = {{"Host", "localhost"},
                                          {"authorization", "Bearer secret"},
                                          {"Connection", "keep-alive"},
                                          {"Transfer-Encoding", "chunked"},
                                          {"X-Own", "1"}},
                              .body = "abc"};
  EXPECT_EQ(request_for_pod(request, "/a%20b?c=d"),
            "POST /a%20b?c=d HTTP/1.1\r\nHost: localhost\r\nX-Own: 1\r\nContent-Length: 3\r\n"
            "Connection: close\r\n\r\nabc");
}

TEST(RequestForPod, MayAskForAnotherProtocol) {
  const http::Request request{.headers = {{"Host", "x"}, {"Upgrade", "websocket"}}};
  EXPECT_EQ(request_for_pod(request, "?q"),
            "GET /?q HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

}  // namespace
}  // namespace grapnel::local
