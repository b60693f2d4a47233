// What a connection may be upgraded to, and how a client does it. Inside http/ only.
#pragma once

#include <memory>
#include <string>

#include "http/channel.h"
#include "http/server.h"
#include "http/websocket.h"

namespace grapnel::http {

std::unique_ptr<ByteStream> make_byte_stream(std::shared_ptr<Channel> channel);

// Connects as a client to the host of request.target, http or https, through proxies and TLS as
// these options say, and says nothing yet.
Task<Result<std::shared_ptr<Channel>>> connect_channel(Executor executor, ClientOptions options,
                                                       Request request);
// The same, for HTTP/2: nullptr when the server does not speak it.
Task<Result<std::shared_ptr<Channel>>> connect_http2_channel(Executor executor,
                                                             ClientOptions options,
                                                             Request request);

// Answers the handshake in `request`; a request that is none is answered with 400.
Task<Result<std::unique_ptr<WebSocket>>> accept_websocket_on(std::shared_ptr<Channel> channel,
                                                             Request request,
                                                             std::string subprotocol);

}  // namespace grapnel::http
