#include "local/node/dns.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include "local/node/network.h"
#include "local/node/node_fixture_test.h"
#include "tests/simulation/virtual_clock.h"

namespace grapnel::local::dns {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

uint32_t ip(const char* text) {
  return parse_address(text).value_or(0);
}

Table example() {
  Table table;
  table.add_address("worker-0.exp.default.svc.cluster.local", ip("10.244.0.5"));
  table.add_address("exp.default.svc.cluster.local", ip("10.244.0.5"));
  table.add_address("exp.default.svc.cluster.local", ip("10.244.0.6"));
  table.add_service("_http._tcp.exp.default.svc.cluster.local",
                    {.port = 8080, .target = "worker-0.exp.default.svc.cluster.local"});
  table.add_alias("elsewhere.default.svc.cluster.local", "example.com");
  return table;
}

struct Case {
  const char* what;
  const char* name;
  Type type;
  Code code;
  std::vector<std::string> answers;
};

struct DnsAnswers : testing::TestWithParam<Case> {};

TEST_P(DnsAnswers, AsKubernetesGivesThem) {
  const Case& c = GetParam();
  const auto query = parse_query(encode_query(1, c.name, c.type));
  const Response response = answer(example(), *query, 0);
  EXPECT_EQ(response.code, c.code);
  std::vector<std::string> data;
  for (const Record& record : response.answers) data.push_back(record.data);
  EXPECT_EQ(data, c.answers);
  EXPECT_TRUE(parse_response(encode(*query, response, 512)));
}

INSTANTIATE_TEST_SUITE_P(
    All, DnsAnswers,
    testing::Values(
        Case{"a pod",
             "worker-0.exp.default.svc.cluster.local",
             Type::kA,
             Code::kNoError,
             {address_data(ip("10.244.0.5"))}},
        Case{"a headless service",
             "EXP.default.svc.cluster.local",
             Type::kA,
             Code::kNoError,
             {address_data(ip("10.244.0.5")), address_data(ip("10.244.0.6"))}},
        Case{"no IPv6, but the name is there",
             "exp.default.svc.cluster.local",
             Type::kAaaa,
             Code::kNoError,
             {}},
        Case{"a port",
             "_http._tcp.exp.default.svc.cluster.local",
             Type::kSrv,
             Code::kNoError,
             {service_data(0, 100, 8080, "worker-0.exp.default.svc.cluster.local")}},
        Case{"nobody", "worker-9.exp.default.svc.cluster.local", Type::kA, Code::kNoSuchName, {}},
        Case{"a search list's attempt",
             "example.com.svc.cluster.local",
             Type::kA,
             Code::kNoSuchName,
             {}},
        Case{"a name with names below it", "svc.cluster.local", Type::kA, Code::kNoError, {}},
        Case{"the zone", "cluster.local", Type::kA, Code::kNoError, {}},
        Case{"an address's name",
             "5.0.244.10.in-addr.arpa",
             Type::kPtr,
             Code::kNoError,
             {name_data("worker-0.exp.default.svc.cluster.local")}},
        Case{"an address of nobody", "9.9.244.10.in-addr.arpa", Type::kPtr, Code::kNoSuchName, {}},
        Case{"a pod by its address",
             "10-244-0-7.default.pod.cluster.local",
             Type::kA,
             Code::kNoError,
             {address_data(ip("10.244.0.7"))}},
        Case{"an external name",
             "elsewhere.default.svc.cluster.local",
             Type::kA,
             Code::kNoError,
             {name_data("example.com")}}),
    [](const auto& info) {
      std::string name = info.param.what;
      std::erase_if(name, [](char c) { return !isalnum(static_cast<unsigned char>(c)); });
      return name;
    });

TEST(DnsTable, OnlyOurNamesAreOurs) {
  EXPECT_TRUE(is_ours("cluster.local"));
  EXPECT_TRUE(is_ours("x.cluster.local"));
  EXPECT_FALSE(is_ours("xcluster.local"));
  EXPECT_FALSE(is_ours("example.com"));
  EXPECT_TRUE(is_ours("1.0.244.10.in-addr.arpa"));
  EXPECT_FALSE(is_ours("1.1.1.8.in-addr.arpa"));
  EXPECT_FALSE(is_ours("x.in-addr.arpa"));
}

TEST(DnsTable, TurnsTheOrder) {
  const auto query = parse_query(encode_query(1, "exp.default.svc.cluster.local", Type::kA));
  EXPECT_EQ(answer(example(), *query, 1).answers[0].data, address_data(ip("10.244.0.6")));
}

TEST(DnsTable, UpstreamsComeFromResolvConf) {
  std::vector<std::string> found;
  for (const Upstream& u : parse_upstreams("# x\nnameserver 10.0.0.2 \nnameserver ::1\nsearch a\n"
                                           "nameserver\t127.0.0.53\n")) {
    found.push_back(u.address);
  }
  EXPECT_THAT(found, ElementsAre("10.0.0.2", "127.0.0.53"));
}

int bound(int type, uint16_t* port) {
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(*port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
  if (type == SOCK_STREAM) EXPECT_EQ(listen(fd, 5), 0);
  socklen_t size = sizeof where;
  getsockname(fd, reinterpret_cast<sockaddr*>(&where), &size);
  *port = ntohs(where.sin_port);
  return fd;
}

Fd asker(int type, uint16_t port) {
  Fd fd(socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
  return fd;
}

struct DnsServerTest : testing::Test {
  boost::asio::io_context loop;
  Table table = example();
  uint16_t port = 0;
  uint16_t tcp_port = 0;

  std::string receive(int fd) {
    char answer[65536];
    for (int turn = 0; turn < 500; ++turn) {
      loop.restart();
      loop.run_for(milliseconds(10));
      const ssize_t size = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
      if (size >= 0) return {answer, static_cast<size_t>(size)};
    }
    return {};
  }
  std::unique_ptr<Server> start(std::vector<Upstream> upstreams, Clock& clock = system_clock()) {
    auto server = std::make_unique<Server>(
        Server::Options{.executor = loop.get_executor(),
                        .clock = &clock,
                        .names = [this]() -> const Table& { return table; },
                        .upstreams = std::move(upstreams),
                        .patience = milliseconds(200)});
    Fd udp(bound(SOCK_DGRAM, &port));
    Fd tcp(bound(SOCK_STREAM, &tcp_port));
    server->serve(std::move(udp), std::move(tcp));
    return server;
  }
};

TEST_F(DnsServerTest, AnswersByUdpAndTcp) {
  const auto server = start({});
  const std::string question = encode_query(5, "exp.default.svc.cluster.local", Type::kA);
  const Fd udp = asker(SOCK_DGRAM, port);
  ASSERT_GT(send(udp.get(), "rubbish", 7, 0), 0);
  ASSERT_GT(send(udp.get(), question.data(), question.size(), 0), 0);
  auto response = parse_response(receive(udp.get()));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->id, 5);
  EXPECT_THAT(response->answers, SizeIs(2));

  const Fd tcp = asker(SOCK_STREAM, tcp_port);
  const std::string framed = std::string("\0", 1) + static_cast<char>(question.size()) + question;
  ASSERT_GT(send(tcp.get(), framed.data(), framed.size(), 0), 0);
  response = parse_response(receive(tcp.get()).substr(2));
  ASSERT_TRUE(response);
  EXPECT_THAT(response->answers, SizeIs(2));
}

TEST_F(DnsServerTest, OtherNamesFailAtOnceWhereThereIsNoResolver) {
  const auto server = start({});
  const Fd udp = asker(SOCK_DGRAM, port);
  const std::string question = encode_query(6, "example.com", Type::kA);
  ASSERT_GT(send(udp.get(), question.data(), question.size(), 0), 0);
  const auto response = parse_response(receive(udp.get()));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->code, Code::kServerFailure);
}

TEST_F(DnsServerTest, OtherNamesGoToTheHostsResolver) {
  uint16_t silent_port = 0;
  uint16_t upstream_port = 0;
  const Fd silent(bound(SOCK_DGRAM, &silent_port));
  const Fd upstream(bound(SOCK_DGRAM, &upstream_port));
  // The first never answers; the second does.
  const auto server = start({{.address = "127.0.0.1", .port = silent_port},
                             {.address = "127.0.0.1", .port = upstream_port}});
  const Fd udp = asker(SOCK_DGRAM, port);
  const std::string question = encode_query(77, "example.com", Type::kA);
  ASSERT_GT(send(udp.get(), question.data(), question.size(), 0), 0);
  sockaddr_in from{};
  socklen_t size = sizeof from;
  char packet[512];
  ssize_t got = -1;
  for (int turn = 0; got < 0 && turn < 500; ++turn) {
    loop.restart();
    loop.run_for(milliseconds(10));
    got = recvfrom(upstream.get(), packet, sizeof packet, MSG_DONTWAIT,
                   reinterpret_cast<sockaddr*>(&from), &size);
  }
  const auto query = parse_query({packet, static_cast<size_t>(got)});
  ASSERT_TRUE(query);
  EXPECT_EQ(query->name, "example.com");
  const std::string reply =
      encode(*query, {.answers = {{.name = "example.com", .data = address_data(42)}}}, 512);
  // One that only guesses the number is not believed.
  std::string wrong = reply;
  wrong[0] = static_cast<char>(wrong[0] ^ 0x55);
  sendto(upstream.get(), wrong.data(), wrong.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  sendto(upstream.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  const auto response = parse_response(receive(udp.get()));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->id, 77);
  ASSERT_THAT(response->answers, SizeIs(1));
  EXPECT_EQ(response->answers[0].data, address_data(42));
}

TEST(DnsTable, WaitsForNamesThatSomebodyWillHave) {
  const Instant now{seconds(100)};
  Table table = example();
  table.await("worker-1.exp.default.svc.cluster.local");
  table.await("exp.default.svc.cluster.local");
  table.deny("worker-2.exp.default.svc.cluster.local");
  table.await_below("exp.default.svc.cluster.local", now);
  EXPECT_TRUE(table.is_awaited("worker-1.exp.default.svc.cluster.local", now));
  EXPECT_FALSE(table.is_awaited("exp.default.svc.cluster.local", now)) << "it has addresses";
  EXPECT_FALSE(table.is_awaited("worker-3.exp.default.svc.cluster.local", now)) << "it is over";

  const Instant before = now - milliseconds(1);
  EXPECT_TRUE(table.is_awaited("worker-3.exp.default.svc.cluster.local", before));
  for (const char* name :
       {"worker-0.exp.default.svc.cluster.local", "worker-2.exp.default.svc.cluster.local",
        "a.worker-3.exp.default.svc.cluster.local", "worker-3.other.default.svc.cluster.local",
        "_tcp.exp.default.svc.cluster.local", "cluster.local", "exp", ""}) {
    EXPECT_FALSE(table.is_awaited(name, before)) << name;
  }
}

TEST_F(DnsServerTest, AQuestionWaitsForTheAddress) {
  const std::string name = "late.exp.default.svc.cluster.local";
  table.await(name);
  const auto server = start({});
  const Fd udp = asker(SOCK_DGRAM, port);
  const Fd tcp = asker(SOCK_STREAM, tcp_port);
  const std::string question = encode_query(7, name, Type::kA);
  const std::string framed = std::string("\0", 1) + static_cast<char>(question.size()) + question;
  ASSERT_GT(send(udp.get(), question.data(), question.size(), 0), 0);
  ASSERT_GT(send(tcp.get(), framed.data(), framed.size(), 0), 0);
  // Another's question is answered meanwhile: so the first has been read.
  const std::string other = encode_query(8, "exp.default.svc.cluster.local", Type::kA);
  ASSERT_GT(send(udp.get(), other.data(), other.size(), 0), 0);
  EXPECT_EQ(parse_response(receive(udp.get()))->id, 8);

  table.add_address(name, ip("10.244.0.9"));
  server->names_changed();
  auto response = parse_response(receive(udp.get()));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->id, 7);
  ASSERT_THAT(response->answers, SizeIs(1));
  EXPECT_EQ(response->answers[0].data, address_data(ip("10.244.0.9")));
  response = parse_response(receive(tcp.get()).substr(2));
  ASSERT_TRUE(response);
  EXPECT_THAT(response->answers, SizeIs(1));
}

TEST_F(DnsServerTest, WhoWaitedInVainIsToldToAskAgain) {
  const std::string name = "late.exp.default.svc.cluster.local";
  table.await(name);
  simulation::VirtualClock clock;
  const auto server = start({}, clock);
  const Fd udp = asker(SOCK_DGRAM, port);
  const auto ask = [&](uint16_t id) {
    const std::string question = encode_query(id, name, Type::kA);
    ASSERT_GT(send(udp.get(), question.data(), question.size(), 0), 0);
    loop.restart();
    loop.run_for(milliseconds(50));
  };
  const auto code_of = [&](uint16_t id) {
    const auto response = parse_response(receive(udp.get()));
    EXPECT_TRUE(response && response->id == id);
    return response ? response->code : Code::kRefused;
  };
  ask(1);
  EXPECT_FALSE(clock.wake_next(clock.instant() + milliseconds(3999)));
  EXPECT_TRUE(clock.wake_next(clock.instant() + seconds(4)));
  EXPECT_EQ(code_of(1), Code::kServerFailure);

  ask(2);
  server->release();
  EXPECT_EQ(code_of(2), Code::kServerFailure);

  ask(3);
  table = example();  // the pod has died
  server->names_changed();
  EXPECT_EQ(code_of(3), Code::kNoSuchName);
}

// Asks as programs do: through the C library, /etc/resolv.conf and its search list.
TEST_F(NodeTest, PodsFindEachOtherByName) {
  auto sockets = run(runner->network()->dns_sockets());
  ASSERT_TRUE(sockets) << sockets.error().message;
  Table table;
  Server server({.executor = executor,
                 .names = [&table]() -> const Table& { return table; },
                 .upstreams = {}});
  server.serve(std::move(sockets->first), std::move(sockets->second));
  const std::string address =
      start_pod("w0", {.hostname = "worker-0-0", .subdomain = "exp-1"}).address;
  table.add_address("worker-0-0.exp-1.default.svc.cluster.local", *parse_address(address));
  const ContainerStatus end = run_script(
      "asker",
      "for n in worker-0-0.exp-1 worker-0-0.exp-1.default.svc worker-0-0.exp-1.default.svc."
      "cluster.local worker-9-9.exp-1 asker localhost; do perl -MSocket -e 'my $a = "
      "gethostbyname($ARGV[0]); print $a ? inet_ntoa($a) : \"none\", \"\\n\"' $n; done; perl "
      "-MSocket -e 'print scalar gethostbyaddr(inet_aton($ARGV[0]), AF_INET), \"\\n\"' " +
          address);
  EXPECT_EQ(end.exit_code, 0);
  std::string own;
  for (const PodStatus& pod : runner->pods()) {
    if (pod.id == "asker") own = pod.address;
  }
  EXPECT_EQ(output("asker"), address + "\n" + address + "\n" + address + "\nnone\n" + own +
                                 "\n127.0.0.1\nworker-0-0.exp-1.default.svc.cluster.local\n");
}

}  // namespace
}  // namespace grapnel::local::dns
