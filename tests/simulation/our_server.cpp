#include "tests/simulation/our_server.h"

#include <fmt/format.h>

#include <stdexcept>

#include "document/line_splitter.h"

namespace grapnel::simulation {
namespace {

// So that histories expire as they do on a busy cluster.
constexpr size_t kHistoryBytes = 1;
// On the clock of the machine, which must not decide anything here.
constexpr Duration kNever = hours(1000);

http::Request without_timeout(http::Request request) {
  request.timeout = kNever;
  return request;
}

bool is_write(const http::Request& request) {
  return request.method == "PATCH" || request.method == "PUT";
}

}  // namespace

// ---- watches ------------------------------------------------------------------------------------

// What an open watch and the loop that reads it share.
struct OurServer::Reader {
  Send send;
  bool is_gone = false;
  WatchAnswer answer;
};

class OurServer::OpenWatch final : public Watch {
 public:
  OpenWatch(std::shared_ptr<Reader> reader, Spawned reading)
      : reader_(std::move(reader)), reading_(std::move(reading)) {}
  ~OpenWatch() override { reader_->is_gone = true; }

 private:
  std::shared_ptr<Reader> reader_;
  Spawned reading_;
};

Task<> OurServer::read(std::shared_ptr<Reader> reader, std::shared_ptr<http::Transport> transport,
                       http::Request request) {
  auto opened = co_await transport->open(request);
  if (!opened) {
    reader->answer.refused = http::Response{.status = 503};
    co_return;
  }
  reader->answer.headers = opened->headers;
  const bool refused = opened->status != 200;
  if (refused) reader->answer.refused = {.status = opened->status, .headers = opened->headers};
  for (;;) {
    auto piece = co_await opened->body->read();
    if (reader->is_gone) co_return;
    const bool ends = !piece || piece->empty();
    if (refused && !ends) reader->answer.refused->body += *piece;
    if (!refused) reader->send(ends ? "" : std::move(*piece));
    if (ends) co_return;
  }
}

Server::WatchAnswer OurServer::watch(const http::Request& request, Send send) {
  auto reader = std::make_shared<Reader>();
  reader->send = std::move(send);
  auto reading =
      spawn(context_->get_executor(), read(reader, server_.transport(), without_timeout(request)));
  poll();
  WatchAnswer answer = std::move(reader->answer);
  answer.watch = std::make_unique<OpenWatch>(std::move(reader), std::move(reading));
  return answer;
}

// ---- the mirror ---------------------------------------------------------------------------------

void OurServer::mirror(const kube::Kind& kind) {
  const http::Request request{
      .target = fmt::format("{}?watch=true&timeoutSeconds=100000000", collection_of(kind, "")),
      .headers = {{"Accept", "application/json"}}};
  auto lines = std::make_shared<LineSplitter>();
  auto answer = watch(request, [this, kind, lines](const std::string& piece) {
    const auto fed = lines->feed(piece, [&](std::string_view line) -> Result<> {
      note(kind, line);
      return {};
    });
    if (!fed || piece.empty()) throw std::logic_error("the mirror is broken");
  });
  if (answer.refused) {
    throw std::logic_error(fmt::format("{}: {}", kind.plural, answer.refused->body));
  }
  mirrors_.push_back(std::move(answer.watch));
}

void OurServer::note(const kube::Kind& kind, std::string_view line) {
  const auto event = parse_json(line);
  const auto type = event ? string_or(grapnel::find(*event, "type")) : "";
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") {
    throw std::logic_error("the mirror has got " + std::string(line));
  }
  const auto object = std::make_shared<const Json>(*grapnel::find(*event, "object"));
  version_ =
      std::max(version_, kube::parse_resource_version(meta_text(*object, "resourceVersion")));
  const bool deleted = type == "DELETED";
  wrote_ = true;
  const JsonPtr before = keep(kind, key_of(*object), deleted ? nullptr : object);
  tell_write({.who = who_.empty() ? "server" : who_,
              .verb = deleted ? "delete" : (before ? "update" : "create"),
              .kind = kind,
              .before = before.get(),
              .after = deleted ? nullptr : object.get()});
}

// ---- requests -----------------------------------------------------------------------------------

OurServer::OurServer(const Subject& subject, std::vector<ServedKind> kinds, VirtualClock& clock,
                     uint64_t seed)
    : Server(std::move(kinds)),
      webhooks_(subject.webhooks()),
      context_(std::make_unique<boost::asio::io_context>(1)) {
  start(clock, seed);
  for (const Json& definition : subject.definitions()) {
    const auto made =
        ask("admin", "POST", collection_of(kube::kinds::kCustomResourceDefinition, ""), definition);
    if (made.status != 201)
      throw std::logic_error(fmt::format("a definition is refused: {} {}", made.status, made.body));
  }
  for (const auto& served : kinds_) mirror(served.kind);
}

// What runs goes first, as all of it refers into the rest.
OurServer::~OurServer() {
  context_.reset();
}

void OurServer::start(VirtualClock& clock, uint64_t seed) {
  std::optional<Result<std::string>> started;
  const local::ApiServerOptions options{.listen = false,
                                        .history_bytes = kHistoryBytes,
                                        .residents = {.mutating = webhooks_.mutating,
                                                      .validating = webhooks_.validating,
                                                      .admission = webhooks_.admission.get()},
                                        .seed = seed | 1};
  const auto starting =
      spawn(context_->get_executor(),
            [](OurServer& self, Clock& on, local::ApiServerOptions with, auto& result) -> Task<> {
              result = co_await self.server_.start(co_await this_executor(), on, std::move(with));
            }(*this, clock, options, started));
  poll();
  if (!started || !*started) throw std::logic_error("the server does not start");
}

bool OurServer::poll() {
  context_->restart();
  return context_->poll() > 0;
}

http::Response OurServer::handle(const http::Request& request, const std::string& who) {
  std::optional<Result<http::Response>> answer;
  who_ = who;
  wrote_ = false;
  const auto asking =
      spawn(context_->get_executor(),
            [](http::Transport& transport, http::Request with, auto& result) -> Task<> {
              result = co_await transport.send(with);
            }(*server_.transport(), without_timeout(request), answer));
  poll();
  if (!answer || !*answer) throw std::logic_error("no answer to " + request.target);
  if (is_write(request) && (*answer)->status == 200 && !wrote_) {
    const auto object = parse_json((*answer)->body);
    const auto name = object ? meta_text(*object, "name") : "";
    for (const auto& served : kinds_) {
      const Json* found =
          find(served.kind, {Interned(served.kind.namespaced ? "default" : ""), std::string(name)});
      if (found == nullptr || request.target.find(served.kind.plural) == std::string::npos)
        continue;
      tell_write({who, "update", served.kind, found, found, false});
      break;
    }
  }
  who_.clear();
  return std::move(**answer);
}

std::unique_ptr<Server> make_our_server(const Subject& subject, VirtualClock& clock,
                                        Random& random) {
  return std::make_unique<OurServer>(subject, with_common(subject.kinds()), clock, random.next());
}

}  // namespace grapnel::simulation
