// A client's connection made by libcurl, which knows proxies, client certificates and names, and
// then used as bare bytes.
#include <boost/asio/error.hpp>

#include "http/curl_loop.h"
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

}  // namespace

Task<Result<std::shared_ptr<Channel>>> connect_channel(Executor executor, ClientOptions options,
                                                       Request request) {
  const Instant deadline =
      system_clock().instant() + std::clamp<Duration>(request.timeout, Duration::zero(), hours(24));
  const auto transfer =
      std::make_shared<Transfer>(std::make_shared<CurlLoop>(executor, 0),
                                 std::make_shared<const ClientOptions>(std::move(options)),
                                 std::move(request), Transfer::Kind::kConnect);
  if (auto started = transfer->start(); !started) co_return fail(started.error());
  while (!transfer->done()) {
    if (system_clock().instant() >= deadline) {
      co_return fail(transfer->failure(Reason::kTransport, "no connection in time"));
    }
    co_await transfer->wait(deadline);
  }
  if (transfer->error()) co_return fail(*transfer->error());
  co_return std::make_shared<CurlChannel>(executor, transfer);
}

}  // namespace grapnel::http
