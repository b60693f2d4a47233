// Both JSON parsers: what they accept they read alike, and it can be written and read back.
#include "document/json_view.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  static JsonParser parser;
  const auto view = parser.parse(text);
  const auto json = parse_json(text);
  if (view && json) fuzz::require(equal(view->to_json(), *json), "both parsers read the same");
  if (view) {
    const Json copy = view->to_json();
    fuzz::require(view->size() >= JsonView(copy).size(), "a copy has no more members");
    const auto again = parse_json(to_text(copy));
    fuzz::require(again && equal(*again, copy), "compact text reads back");
    const auto pretty = parse_json(to_pretty_text(copy));
    fuzz::require(pretty && equal(*pretty, copy), "pretty text reads back");
  }
  return 0;
}
