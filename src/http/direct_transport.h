// A Transport straight to a Handler in this program, for clients that live beside a server: the
// same messages, but no connection, no TLS and nothing to parse.
#pragma once

#include <memory>

#include "http/client.h"
#include "http/server.h"

namespace grapnel::http {

class DirectTransport final : public Transport {
 public:
  DirectTransport(Executor executor, Handler handler);
  ~DirectTransport() override;

  Task<Result<Response>> send(const Request& request) override;
  Task<Result<StreamResponse>> open(const Request& request) override;
  // Cuts off what is under way and returns when no handler runs; what is asked later is refused.
  Task<> stop();

 private:
  class Call;
  class Body;
  struct Calls;
  static Task<> serve(std::shared_ptr<Calls> calls, std::shared_ptr<Call> call);
  std::shared_ptr<Calls> calls_;
};

}  // namespace grapnel::http
