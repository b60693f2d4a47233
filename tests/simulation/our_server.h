// The laptop's own API server as the server of a world: its store, watches, verbs and admission run
// under the same schedules as the operator, in memory and on the same virtual time. The faults stay
// on the wire between the two.
//
// What invariants read is a mirror, kept by watches of all kinds that nothing disturbs.
#pragma once

#include <boost/asio/io_context.hpp>

#include "local/apiserver/server.h"
#include "tests/simulation/world.h"

namespace grapnel::simulation {

class OurServer final : public Server {
 public:
  OurServer(const Subject& subject, std::vector<ServedKind> kinds, VirtualClock& clock,
            uint64_t seed);
  ~OurServer() override;

  http::Response handle(const http::Request& request, const std::string& who) override;
  WatchAnswer watch(const http::Request& request, Send send) override;
  bool poll() override;

 private:
  struct Reader;
  class OpenWatch;
  void start(VirtualClock& clock, uint64_t seed);
  void mirror(const kube::Kind& kind);
  void note(const kube::Kind& kind, std::string_view line);
  static Task<> read(std::shared_ptr<Reader> reader, std::shared_ptr<http::Transport> transport,
                     http::Request request);

  WebhookConfigurations webhooks_;
  std::unique_ptr<boost::asio::io_context> context_;
  local::ApiServer server_;
  std::vector<std::unique_ptr<Watch>> mirrors_;
  std::string who_;  // writes now
  bool wrote_ = false;
};

std::unique_ptr<Server> make_our_server(const Subject& subject, VirtualClock& clock,
                                        Random& random);

}  // namespace grapnel::simulation
