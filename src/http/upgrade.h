// What a connection may become. Inside http/ only.
#pragma once

#include <memory>
#include <string>

#include "http/channel.h"
#include "http/server.h"
#include "http/websocket.h"

namespace grapnel::http {

std::unique_ptr<ByteStream> make_byte_stream(std::shared_ptr<Channel> channel);

// Answers the handshake in `request`; a request that is none is answered with 400.
Task<Result<std::unique_ptr<WebSocket>>> accept_websocket_on(std::shared_ptr<Channel> channel,
                                                             Request request,
                                                             std::string subprotocol);

}  // namespace grapnel::http
