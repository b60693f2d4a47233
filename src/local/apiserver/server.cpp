#include "local/apiserver/server.h"

#include <fmt/format.h>

#include <filesystem>
#include <random>

#include "http/direct_transport.h"
#include "local/apiserver/bootstrap.h"
#include "local/apiserver/handler.h"
#include "local/apiserver/node_types.h"

namespace grapnel::local {
namespace {

uint64_t system_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

Result<> make_private_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(Reason::kSystem, "making {}: {}", path, error.message());
  std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  if (error) return fail(Reason::kSystem, "protecting {}: {}", path, error.message());
  return {};
}

}  // namespace

struct ApiServer::Impl {
  std::unique_ptr<Store> store;
  std::unique_ptr<Api> api;
  std::unique_ptr<http::Server> http;
  std::shared_ptr<http::DirectTransport> direct;
};

ApiServer::ApiServer() : impl_(std::make_unique<Impl>()) {}
ApiServer::~ApiServer() = default;

Task<Result<std::string>> ApiServer::start(Executor executor, Clock& clock,
                                           ApiServerOptions options) {
  StoreOptions store_options{.history_bytes = options.history_bytes};
  if (!options.data_dir.empty()) {
    if (auto made = make_private_folder(options.data_dir); !made) co_return fail(made.error());
    store_options.path = options.data_dir + "/objects.db";
  }
  auto store = Store::open(executor, std::move(store_options));
  if (!store) co_return fail(store.error());
  impl_->store = std::move(*store);
  impl_->api = std::make_unique<Api>(executor, clock, *impl_->store,
                                     options.seed == 0 ? system_seed() : options.seed);
  Api& api = *impl_->api;
  api.token = options.token;
  api.webhooks.set_residents(options.residents);
  if (auto set = api.services.set_range(options.service_range); !set) co_return fail(set.error());
  follow_store(api);

  const auto handler = [&api](http::Exchange& exchange) { return handle(api, exchange); };
  if (options.listen) {
    http::ServerOptions listening{.address = options.address,
                                  .port = options.port == 0 ? options.preferred_port : options.port,
                                  .certificate_pem = options.certificate_pem,
                                  .key_pem = options.key_pem};
    auto http = http::start_server(executor, listening, handler);
    if (!http && options.port == 0 && options.preferred_port != 0) {
      listening.port = 0;
      http = http::start_server(executor, listening, handler);
    }
    if (!http) co_return fail(http.error());
    impl_->http = std::move(*http);
  }
  impl_->direct = std::make_shared<http::DirectTransport>(executor, handler);
  if (auto made = co_await create_first_objects(api, port()); !made) {
    co_await stop();  // half a server is none
    co_return fail(made.error());
  }
  if (!options.listen) co_return "";
  co_return fmt::format("{}://{}:{}", options.certificate_pem.empty() ? "http" : "https",
                        options.address, port());
}

uint16_t ApiServer::port() const {
  return impl_->http ? impl_->http->port() : 0;
}

std::shared_ptr<http::Transport> ApiServer::transport() const {
  return impl_->direct;
}

void ApiServer::set_pod_backend(PodBackend* backend) {
  if (!impl_->api) return;
  impl_->api->pods = backend;
  impl_->api->registry.set_custom("the node's",
                                  backend == nullptr ? std::vector<TypePtr>() : node_types());
}

Task<> ApiServer::stop() {
  if (impl_->http) co_await impl_->http->stop(seconds(1));
  impl_->http.reset();
  if (impl_->direct) co_await impl_->direct->stop();
  if (impl_->api) {
    for (Spawned& task : impl_->api->tasks) co_await task.join();
  }
  if (impl_->store) co_await impl_->store->close();
  impl_->api.reset();
  impl_->store.reset();
}

}  // namespace grapnel::local
