// DNS packets: questions of pods and answers of the host's resolver. What a question asks survives
// our answer, and no answer is larger than its asker can take.
#include "local/node/dns.h"
#include "local/node/dns_message.h"
#include "local/node/network.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;
using namespace grapnel::local;

namespace {

const dns::Table& table() {
  static const dns::Table made = [] {
    dns::Table t;
    for (uint32_t i = 0; i < 100; ++i) {
      t.add_address("exp.default.svc.cluster.local", (10U << 24) + i);
    }
    t.add_address("w.exp.default.svc.cluster.local", (10U << 24) + 1);
    t.add_service("_http._tcp.exp.default.svc.cluster.local",
                  {.port = 80, .target = "w.exp.default.svc.cluster.local"});
    t.add_alias("far.default.svc.cluster.local", "example.com");
    t.await("late.exp.default.svc.cluster.local");
    t.await_below("exp.default.svc.cluster.local", Instant::max());
    return t;
  }();
  return made;
}

void check_answer(const dns::Query& query) {
  const auto packet = encode(query, answer(table(), query, 1), query.largest);
  fuzz::require(packet.size() <= query.largest || packet.size() <= 12 + query.question.size() + 11,
                "an answer fits, or is the question alone");
  const auto response = dns::parse_response(packet);
  fuzz::require(response.has_value(), "our answers can be read");
  fuzz::require(response->id == query.id, "the number comes back");
  const auto echo = packet.substr(12, query.question.size());
  fuzz::require(echo == query.question, "the question comes back as it was spelled");
  if (table().is_awaited(query.name, Instant{})) {
    fuzz::require(response->answers.empty(), "what is awaited has no address");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view packet = fuzz::text_of(data, size);
  if (const auto query = dns::parse_query(packet)) {
    fuzz::require(query->name.size() <= 255, "a name has at most 255 characters");
    fuzz::require(query->largest >= 512 && query->largest <= 1232, "a packet's size has bounds");
    check_answer(*query);
    fuzz::require(!dns::parse_response(packet), "a question is no answer");
  }
  if (const auto response = dns::parse_response(packet)) {
    for (const dns::Record& record : response->answers) {
      fuzz::require(record.data.size() <= size, "data is part of the packet");
    }
  }
  return 0;
}
