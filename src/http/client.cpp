#include "http/client.h"

#include <algorithm>

#include "http/curl_loop.h"
#include "http/exchange.h"
#include "http/http2.h"

namespace grapnel::http {
namespace {

Task<Result<std::string>> next_piece(std::shared_ptr<Transfer> transfer,
                                     std::optional<Duration> silence) {
  while (!transfer->has_body() && !transfer->done()) {
    std::optional<Instant> deadline;
    if (silence) deadline = transfer->last_heard() + *silence;
    if (deadline && system_clock().instant() >= *deadline) {
      transfer->abort("silent");
      co_return fail(transfer->failure(Reason::kTransport,
                                       fmt::format("nothing came for {}", in_seconds(*silence))));
    }
    co_await transfer->wait(deadline);
  }
  if (transfer->has_body()) co_return transfer->take_body();
  if (transfer->error()) co_return fail(*transfer->error());
  co_return std::string();
}

class CurlBodyStream final : public BodyStream {
 public:
  CurlBodyStream(std::shared_ptr<Transfer> transfer, std::optional<Duration> silence)
      : transfer_(std::move(transfer)), silence_(silence) {
    if (silence_) silence_ = std::clamp<Duration>(*silence_, Duration::zero(), hours(24 * 365));
  }
  ~CurlBodyStream() override { transfer_->abort("the reader has gone"); }
  Task<Result<std::string>> read() override { return next_piece(transfer_, silence_); }

 private:
  std::shared_ptr<Transfer> transfer_;
  std::optional<Duration> silence_;
};

Task<Result<Response>> exchange(std::shared_ptr<CurlLoop> loop,
                                std::shared_ptr<const ClientOptions> options,
                                const Request& request) {
  const Instant deadline = deadline_of(request);
  Transfer transfer(std::move(loop), std::move(options), request, Transfer::Kind::kWhole);
  if (auto started = transfer.start(); !started) co_return fail(started.error());
  while (!transfer.done()) {
    if (system_clock().instant() >= deadline) {
      co_return fail(transfer.late());
    }
    co_await transfer.wait(deadline);
  }
  if (transfer.error()) co_return fail(*transfer.error());
  co_return Response{.status = transfer.status(),
                     .headers = transfer.take_headers(),
                     .body = transfer.take_body()};
}

Task<Result<StreamResponse>> open_stream(std::shared_ptr<CurlLoop> loop,
                                         std::shared_ptr<const ClientOptions> options,
                                         const Request& request) {
  const Instant deadline = deadline_of(request);
  const auto silence = request.idle_timeout;
  const auto transfer = std::make_shared<Transfer>(std::move(loop), std::move(options), request,
                                                   Transfer::Kind::kStream);
  if (auto started = transfer->start(); !started) co_return fail(started.error());
  while (!transfer->head_done() && !transfer->done()) {
    if (system_clock().instant() >= deadline) {
      co_return fail(transfer->late());
    }
    co_await transfer->wait(deadline);
  }
  if (!transfer->head_done()) co_return fail(*transfer->error());
  co_return StreamResponse{.status = transfer->status(),
                           .headers = transfer->take_headers(),
                           .body = std::make_unique<CurlBodyStream>(transfer, silence)};
}

Task<Result<Response>> exchange_by_either(std::shared_ptr<CurlLoop> pool,
                                          std::shared_ptr<Http2Pool> shared,
                                          std::shared_ptr<const ClientOptions> options,
                                          const Request& request) {
  if (auto answer = co_await shared->send(request)) co_return std::move(*answer);
  co_return co_await exchange(std::move(pool), std::move(options), request);
}

class CurlTransport final : public Transport {
 public:
  CurlTransport(const Executor& executor, ClientOptions options)
      : options_(std::make_shared<const ClientOptions>(std::move(options))),
        pool_(std::make_shared<CurlLoop>(executor, std::max<size_t>(1, options_->max_connections))),
        streams_(std::make_shared<CurlLoop>(executor, 0)),
        shared_(std::make_shared<Http2Pool>(executor, options_)) {}

  Task<Result<Response>> send(const Request& request) override {
    // A request that arrives while another is under way shares a connection. If the first few of a
    // burst had connections of their own, they would be served long before the rest, and the server
    // would be busy with their consequences instead.
    if (pool_->active() == 0) return exchange(pool_, options_, request);
    return exchange_by_either(pool_, shared_, options_, request);
  }
  Task<Result<StreamResponse>> open(const Request& request) override {
    auto& loop = request.pooled ? pool_ : streams_;
    return open_stream(loop, options_, request);
  }

 private:
  std::shared_ptr<const ClientOptions> options_;
  std::shared_ptr<CurlLoop> pool_;
  std::shared_ptr<CurlLoop> streams_;
  std::shared_ptr<Http2Pool> shared_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(Executor executor, ClientOptions options) {
  return std::make_unique<CurlTransport>(executor, std::move(options));
}

}  // namespace grapnel::http
