// A client's connection made by libcurl, which knows proxies, client certificates and names, and
// then used as bare bytes.
#include <boost/asio/error.hpp>

#include "http/curl_loop.h"
#include "http/exchange.h"
#include "http/upgrade.h"

namespace grapnel::http {
namespace {

class CurlChannel final : public Channel {
 public:
  CurlChannel(const Executor& executor, std::shared_ptr<Transfer> transfer)
      : Channel(executor, transfer->release_socket()), transfer_(std::move(transfer)) {}
  ~CurlChannel() override { CurlChannel::close(); }

  void close() override {
    if (descriptor_.is_open()) descriptor_.release();  // libcurl's to close
    transfer_->abort("closed");
  }

 protected:
  Step try_read(char* data, size_t size) override {
    const auto moved = transfer_->receive(data, size);
    return step_of(moved, Want::kRead);
  }
  Step try_write(std::string_view data) override {
    return step_of(transfer_->transmit(data), Want::kWrite);
  }

 private:
  static Step step_of(const Transfer::Moved& moved, Want want) {
    if (moved.code == CURLE_OK) return {.count = moved.count};
    if (moved.code == CURLE_AGAIN) return {.want = want};
    return {.error = boost::asio::error::connection_reset};
  }
  std::shared_ptr<Transfer> transfer_;
};

Task<Result<>> connected(Transfer& transfer, Instant deadline) {
  if (auto started = transfer.start(); !started) co_return started;
  while (!transfer.done()) {
    if (system_clock().instant() >= deadline) {
      co_return fail(transfer.failure(Reason::kTransport, "no connection in time"));
    }
    co_await transfer.wait(deadline);
  }
  if (transfer.error()) co_return fail(*transfer.error());
  co_return Result<>();
}

std::shared_ptr<Transfer> make_transfer(const Executor& executor, ClientOptions options,
                                        Request request) {
  return std::make_shared<Transfer>(std::make_shared<CurlLoop>(executor, 0),
                                    std::make_shared<const ClientOptions>(std::move(options)),
                                    std::move(request), Transfer::Kind::kConnect);
}

}  // namespace

Task<Result<std::shared_ptr<Channel>>> connect_channel(Executor executor, ClientOptions options,
                                                       Request request) {
  const Instant deadline = deadline_of(request);
  const auto transfer = make_transfer(executor, std::move(options), std::move(request));
  if (auto made = co_await connected(*transfer, deadline); !made) co_return fail(made.error());
  co_return std::make_shared<CurlChannel>(executor, transfer);
}

Task<Result<std::shared_ptr<Channel>>> connect_http2_channel(Executor executor,
                                                             ClientOptions options,
                                                             Request request) {
  const Instant deadline = deadline_of(request);
  const auto transfer = make_transfer(executor, std::move(options), std::move(request));
  transfer->offer_http2();
  if (auto made = co_await connected(*transfer, deadline); !made) co_return fail(made.error());
  if (!transfer->speaks_http2()) co_return nullptr;
  co_return std::make_shared<CurlChannel>(executor, transfer);
}

}  // namespace grapnel::http
