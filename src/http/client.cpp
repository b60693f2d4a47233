#include "http/client.h"

#include <algorithm>

#include "http/curl_loop.h"

namespace grapnel::http {
namespace {

Instant now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

Instant after(Duration length) {
  return now() + std::clamp<Duration>(length, Duration::zero(), hours(24 * 365));
}

std::string in_seconds(Duration length) {
  return fmt::format("{:g} s", static_cast<double>(length.count()) / 1e6);
}

Task<Result<std::string>> next_piece(std::shared_ptr<Transfer> transfer,
                                     std::optional<Duration> silence) {
  while (!transfer->has_body() && !transfer->done()) {
    std::optional<Instant> deadline;
    if (silence) deadline = transfer->last_heard() + *silence;
    if (deadline && now() >= *deadline) {
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
                                std::shared_ptr<const ClientOptions> options, Request request) {
  const Duration timeout = request.timeout;
  const Instant deadline = after(timeout);
  Transfer transfer(std::move(loop), std::move(options), std::move(request),
                    Transfer::Kind::kWhole);
  if (auto started = transfer.start(); !started) co_return fail(started.error());
  while (!transfer.done()) {
    if (now() >= deadline) {
      co_return fail(transfer.failure(Reason::kTransport,
                                      fmt::format("no answer within {}", in_seconds(timeout))));
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
                                         Request request) {
  const Duration timeout = request.timeout;
  const Instant deadline = after(timeout);
  const auto silence = request.idle_timeout;
  const auto transfer = std::make_shared<Transfer>(std::move(loop), std::move(options),
                                                   std::move(request), Transfer::Kind::kStream);
  if (auto started = transfer->start(); !started) co_return fail(started.error());
  while (!transfer->head_done() && !transfer->done()) {
    if (now() >= deadline) {
      co_return fail(transfer->failure(Reason::kTransport,
                                       fmt::format("no answer within {}", in_seconds(timeout))));
    }
    co_await transfer->wait(deadline);
  }
  if (!transfer->head_done()) co_return fail(*transfer->error());
  co_return StreamResponse{.status = transfer->status(),
                           .headers = transfer->take_headers(),
                           .body = std::make_unique<CurlBodyStream>(transfer, silence)};
}

class CurlTransport final : public Transport {
 public:
  CurlTransport(const Executor& executor, ClientOptions options)
      : options_(std::make_shared<const ClientOptions>(std::move(options))),
        pool_(std::make_shared<CurlLoop>(executor, std::max<size_t>(1, options_->max_connections))),
        streams_(std::make_shared<CurlLoop>(executor, 0)) {}

  Task<Result<Response>> send(Request request) override {
    return exchange(pool_, options_, std::move(request));
  }
  Task<Result<StreamResponse>> open(Request request) override {
    auto& loop = request.pooled ? pool_ : streams_;
    return open_stream(loop, options_, std::move(request));
  }

 private:
  std::shared_ptr<const ClientOptions> options_;
  std::shared_ptr<CurlLoop> pool_;
  std::shared_ptr<CurlLoop> streams_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(Executor executor, ClientOptions options) {
  return std::make_unique<CurlTransport>(executor, std::move(options));
}

}  // namespace grapnel::http
