#include "http/upgrade.h"

namespace grapnel::http {
namespace {

Task<Result<std::string>> read_from(std::shared_ptr<Channel> channel) {
  std::string out;
  const auto read = co_await channel->append_to(out, 32UL << 10);
  if (read.error) co_return fail(Reason::kTransport, "{}", read.error.message());
  co_return out;
}

Task<Result<>> write_to(std::shared_ptr<Channel> channel, std::shared_ptr<Semaphore> turn,
                        std::string_view data) {
  const auto permit = co_await turn->acquire();
  if (const auto error = co_await channel->write(data)) {
    co_return fail(Reason::kTransport, "{}", error.message());
  }
  co_return Result<>();
}

Task<> close_after_goodbye(std::shared_ptr<Channel> channel) {
  channel->set_deadline(
      std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now() + seconds(2)));
  co_await channel->finish_writing();
  channel->close();
}

class ChannelByteStream final : public ByteStream {
 public:
  explicit ChannelByteStream(std::shared_ptr<Channel> channel)
      : channel_(std::move(channel)), turn_(std::make_shared<Semaphore>(channel_->executor(), 1)) {}
  ~ChannelByteStream() override { channel_->close(); }

  // Each keeps what it needs: the stream may be destroyed while another Task reads.
  Task<Result<std::string>> read() override { return read_from(channel_); }
  Task<Result<>> write(std::string_view data) override { return write_to(channel_, turn_, data); }
  Task<> close() override { return close_after_goodbye(channel_); }

 private:
  std::shared_ptr<Channel> channel_;
  std::shared_ptr<Semaphore> turn_;  // several Tasks may write; their pieces do not mix
};

}  // namespace

std::unique_ptr<ByteStream> make_byte_stream(std::shared_ptr<Channel> channel) {
  return std::make_unique<ChannelByteStream>(std::move(channel));
}

}  // namespace grapnel::http
