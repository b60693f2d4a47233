// What stands around a body: paths, Accept headers, field sets, repeated fields.
#include "document/json.h"
#include "local/apiserver/duplicate_fields.h"
#include "local/apiserver/managed/field_set.h"
#include "local/apiserver/request_info.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  (void)local::parse_accept(text);
  const auto info = local::parse_request_info("GET", http::parse_target(text));
  fuzz::require(!info.verb.empty(), "a request has a verb");
  const auto json = parse_json(text);
  if (!json) return 0;
  (void)local::duplicate_fields(text);
  const auto set = local::FieldSet::from_json(*json);
  set.for_each([](const std::string&) {});
  const auto again = local::FieldSet::from_json(set.to_json());
  fuzz::require(again == set, "a field set reads back");
  return 0;
}
