#include "http/http2_connection.h"

#include <algorithm>

#include "base/strings.h"
#include "http/exchange.h"

namespace grapnel::http {
namespace {

constexpr size_t kMost = 128;
constexpr int32_t kWindow = 1 << 20;  // of an answer, before the server waits for us
constexpr int32_t kWindowOfAll = 16 << 20;
constexpr size_t kMaxHeaderBytes = 256UL << 10;
constexpr size_t kPiece = 64UL << 10;

// Headers of HTTP/1.1 about the connection are not allowed in HTTP/2.
bool is_about_connection(std::string_view name) {
  return name == "host" || name == "connection" || name == "keep-alive" ||
         name == "transfer-encoding" || name == "upgrade" || name == "proxy-connection" ||
         name == "expect" || name == "content-length" || name == "te";
}

// The fields of a request as nghttp2 takes them.
class Fields {
 public:
  explicit Fields(const Request& request) {
    const auto [origin, path] = split_url(request.target);
    const auto host = request.headers.get("Host");
    add(":method", request.method);
    add(":scheme", "https");
    add(":authority", host.empty() ? origin.substr(origin.find("://") + 3) : host);
    add(":path", path);
    for (const auto& [name, value] : request.headers) {
      std::string small = to_lower(name);
      if (!is_about_connection(small)) add(std::move(small), value);
    }
    if (request.method != "GET" && request.method != "HEAD") {
      add("content-length", std::to_string(request.body.size()));
    }
  }

  std::vector<nghttp2_nv> view() {
    std::vector<nghttp2_nv> out;
    for (auto& [name, value] : fields_) {
      out.push_back({reinterpret_cast<uint8_t*>(name.data()),
                     reinterpret_cast<uint8_t*>(value.data()), name.size(), value.size(),
                     NGHTTP2_NV_FLAG_NONE});
    }
    return out;
  }

 private:
  void add(std::string name, std::string_view value) {
    fields_.emplace_back(std::move(name), value);
  }
  std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace

struct Http2Connection::Use {
  Use(std::shared_ptr<Http2Connection> of, Stream& of_stream) : connection(std::move(of)) {
    started = connection->begin(of_stream, id);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    if (!started) return;
    connection->give_up(id);
  }
  std::shared_ptr<Http2Connection> connection;
  int32_t id = 0;
  Result<> started;
};

Http2Connection::Http2Connection(std::shared_ptr<Channel> channel, Limits limits)
    : channel_(std::move(channel)), limits_(limits), has_work_(channel_->executor()) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  register_callbacks(callbacks);
  nghttp2_session_client_new(&session_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(kWindow)},
  };
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWindowOfAll);
}

Http2Connection::~Http2Connection() {
  nghttp2_session_del(session_);
}

std::shared_ptr<Http2Connection> Http2Connection::start(std::shared_ptr<Channel> channel,
                                                        Limits limits) {
  auto made = std::make_shared<Http2Connection>(std::move(channel), limits);
  spawn(made->channel_->executor(), read_all(made)).detach();
  spawn(made->channel_->executor(), write_all(made)).detach();
  made->mind_idleness();
  return made;
}

void Http2Connection::close() {
  end_all("the connection was closed");
}

bool Http2Connection::takes_more() const {
  if (!open_ || doubtful_ || nghttp2_session_check_request_allowed(session_) == 0) return false;
  const size_t most =
      nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  return under_way() < std::min(most, kMost);
}

Task<std::optional<Result<Response>>> Http2Connection::send(std::shared_ptr<Http2Connection> self,
                                                            const Request& request) {
  const Instant deadline = deadline_of(request);
  Stream stream(self->channel_->executor(), request);
  const Use use(self, stream);
  if (!use.started) co_return std::nullopt;
  while (!stream.done) {
    if (system_clock().instant() >= deadline) {
      self->doubtful_ = true;
      co_return fail(late(request, stream.was_sent));
    }
    co_await wait_until(stream.timer, deadline);
  }
  if (stream.was_refused) co_return std::nullopt;
  if (stream.error) co_return fail(std::move(*stream.error));
  co_return std::move(stream.answer);
}

Result<> Http2Connection::begin(Stream& stream, int32_t& id) {
  if (!open_) return fail(Reason::kTransport, "the connection is closed");
  Fields fields(stream.request);
  const auto view = fields.view();
  nghttp2_data_provider body{};
  body.read_callback = [](nghttp2_session*, int32_t of, uint8_t* out, size_t size, uint32_t* flags,
                          nghttp2_data_source*, void* self) -> ssize_t {
    Stream* from = static_cast<Http2Connection*>(self)->find(of);
    if (from == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const std::string& whole = from->request.body;
    const size_t count = whole.copy(reinterpret_cast<char*>(out), size, from->body_sent);
    from->body_sent += count;
    if (from->body_sent == whole.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(count);
  };
  id = nghttp2_submit_request(session_, nullptr, view.data(), view.size(),
                              stream.request.body.empty() ? nullptr : &body, nullptr);
  if (id < 0) return fail(Reason::kTransport, "{}", nghttp2_strerror(id));
  streams_.emplace(id, &stream);
  channel_->clear_deadline();
  has_work_.notify_all();
  return {};
}

// Anything that still arrives for it is ignored.
void Http2Connection::give_up(int32_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  if (open_) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    has_work_.notify_all();
  }
  streams_.erase(found);
  mind_idleness();
}

void Http2Connection::mind_idleness() {
  if (streams_.empty() && open_) channel_->set_deadline(system_clock().instant() + limits_.idle);
}

void Http2Connection::end_all(std::string_view why) {
  if (!open_) return;
  open_ = false;
  channel_->close();
  for (auto& [id, stream] : streams_) {
    stream->end(failure_of(stream->request, Reason::kTransport, why, stream->was_sent));
    // None of it has been sent.
    if (!stream->was_sent) stream->was_refused = true;
  }
  streams_.clear();
  has_work_.notify_all();
}

Http2Connection::Stream* Http2Connection::find(int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second;
}

Task<> Http2Connection::read_all(std::shared_ptr<Http2Connection> self) {
  std::string buffer;
  while (self->open_) {
    const auto read = co_await self->channel_->append_to(buffer, kPiece);
    if (read.error || read.count == 0) break;
    const ssize_t taken = nghttp2_session_mem_recv(
        self->session_, reinterpret_cast<const uint8_t*>(buffer.data()), buffer.size());
    if (taken < 0) {
      self->end_all(nghttp2_strerror(static_cast<int>(taken)));
      break;
    }
    buffer.clear();
    self->has_work_.notify_all();  // acknowledgements
    if (nghttp2_session_want_read(self->session_) == 0 &&
        nghttp2_session_want_write(self->session_) == 0) {
      break;
    }
  }
  self->end_all("the server closed the connection before it answered");
}

Task<> Http2Connection::write_all(std::shared_ptr<Http2Connection> self) {
  while (self->open_) {
    std::string out;
    const uint8_t* data = nullptr;
    ssize_t size = 0;
    while (out.size() < kPiece && (size = nghttp2_session_mem_send(self->session_, &data)) > 0) {
      out.append(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    }
    if (size < 0) co_return self->end_all(nghttp2_strerror(static_cast<int>(size)));
    if (out.empty()) {
      co_await self->has_work_.wait();
    } else if (co_await self->channel_->write(out)) {
      co_return self->end_all("the connection is lost");
    }
  }
}

void Http2Connection::register_callbacks(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks,
      [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
         const uint8_t* value, size_t value_size, uint8_t, void* self) {
        static_cast<Http2Connection*>(self)->on_field(
            frame->hd.stream_id, {reinterpret_cast<const char*>(name), name_size},
            {reinterpret_cast<const char*>(value), value_size});
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        if (frame->hd.type == NGHTTP2_HEADERS) {
          static_cast<Http2Connection*>(self)->on_head(frame->hd.stream_id);
        }
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks,
      [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* self) {
        static_cast<Http2Connection*>(self)->on_data(id,
                                                     {reinterpret_cast<const char*>(data), size});
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_send_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        if (frame->hd.type != NGHTTP2_HEADERS) return 0;
        Stream* stream = static_cast<Http2Connection*>(self)->find(frame->hd.stream_id);
        if (stream != nullptr) stream->was_sent = true;
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, int32_t id, uint32_t code, void* self) {
        static_cast<Http2Connection*>(self)->on_close(id, code);
        return 0;
      });
}

void Http2Connection::on_field(int32_t id, std::string_view name, std::string_view value) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->head_done) return;  // trailers
  stream->header_bytes += name.size() + value.size();
  if (stream->header_bytes > kMaxHeaderBytes) {
    stream->end(failure_of(stream->request, Reason::kTransport, "the header is too long",
                           stream->was_sent));
    return give_up(id);
  }
  if (name == ":status") {
    stream->answer.status = std::atoi(std::string(value).c_str());
    stream->answer.headers = {};
  } else {
    stream->answer.headers.add(std::string(name), std::string(value));
  }
}

void Http2Connection::on_head(int32_t id) {
  Stream* stream = find(id);
  // After a 1xx response another head follows.
  if (stream != nullptr && stream->answer.status >= 200) stream->head_done = true;
}

void Http2Connection::on_data(int32_t id, std::string_view piece) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  if (stream->answer.body.size() + piece.size() > limits_.max_body) {
    stream->end(failure_of(stream->request, Reason::kDecode,
                           fmt::format("the answer is longer than {} bytes", limits_.max_body),
                           stream->was_sent));
    return give_up(id);
  }
  stream->answer.body += piece;
}

void Http2Connection::on_close(int32_t id, uint32_t code) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  streams_.erase(id);
  mind_idleness();
  if (code == NGHTTP2_REFUSED_STREAM) stream->was_refused = true;
  if (code == NGHTTP2_NO_ERROR && stream->head_done) return stream->end();
  stream->end(failure_of(stream->request, Reason::kTransport,
                         fmt::format("the server gave it up: {}", nghttp2_http2_strerror(code)),
                         stream->was_sent));
}

}  // namespace grapnel::http
