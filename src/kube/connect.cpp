#include "kube/connect.h"

#include <unistd.h>

#include "kube/credentials.h"
#include "kube/exec_plugin.h"
#include "kube/reloading_transport.h"

namespace grapnel::kube {
namespace {

std::unique_ptr<TokenSource> token_source(const Executor& executor, const Access& access,
                                          const std::shared_ptr<ReloadingTransport>& transport,
                                          Clock& clock) {
  if (!access.token_file.empty()) return token_from_file(access.token_file, clock);
  if (!access.exec) return nullptr;
  return token_from_plugin(executor, {.plugin = *access.exec,
                                      .cluster = access.exec_cluster,
                                      .at = access.user_at,
                                      .on_certificate =
                                          [transport](const PluginCredential& credential) {
                                            transport->set_certificate(credential.certificate_pem,
                                                                       credential.key_pem);
                                          },
                                      .terminal = ::isatty(STDIN_FILENO) == 1,
                                      .clock = &clock});
}

}  // namespace

Result<Connection> connect(Executor executor, const AccessOptions& options, ClientOptions client) {
  auto access = find_access(options);
  if (!access) return fail(std::move(access.error()));
  return connect(std::move(executor), std::move(*access), std::move(client));
}

Result<Connection> connect(Executor executor, Access access, ClientOptions client) {
  auto transport = std::make_shared<ReloadingTransport>(
      http::ClientOptions{.ca_pem = access.authority.text,
                          .client_certificate_pem = access.certificate.text,
                          .client_key_pem = access.key.text,
                          .insecure_skip_verify = access.insecure_skip_verify,
                          .server_name = access.server_name,
                          .proxy_url = access.proxy_url},
      ReloadingTransport::Files{.authority = access.authority.file,
                                .certificate = access.certificate.file,
                                .key = access.key.file},
      [executor](http::ClientOptions options) {
        return http::make_transport(executor, std::move(options));
      },
      *client.clock);
  auto credentials =
      make_credentials(access.headers, token_source(executor, access, transport, *client.clock));
  client.server = access.server;
  client.open_websocket = [executor, transport](http::Request request,
                                                std::vector<std::string> subprotocols) {
    return http::connect_websocket(executor, transport->options(), std::move(request),
                                   std::move(subprotocols));
  };
  return Connection{
      .client = std::make_unique<Client>(transport, std::move(credentials), std::move(client)),
      .ns = std::move(access.ns),
      .context = std::move(access.context)};
}

}  // namespace grapnel::kube
