// Selectors: what is parsed has a text that parses to the same.
#include "document/selector.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const Lookup lookup = [](std::string_view key) -> std::optional<std::string_view> {
    if (key.size() % 2 == 0) return std::nullopt;
    return key;
  };
  if (const auto labels = Selector::parse_labels(text)) {
    const auto again = Selector::parse_labels(labels->text());
    fuzz::require(again && again->requirements() == labels->requirements(), "labels read back");
    fuzz::require(again->matches(lookup) == labels->matches(lookup), "and match the same");
  }
  if (const auto fields = Selector::parse_fields(text)) {
    const auto again = Selector::parse_fields(fields->text());
    fuzz::require(again && again->requirements() == fields->requirements(), "fields read back");
    fields->matches(lookup);
  }
  if (const auto json = parse_json(text)) {
    if (const auto selector = Selector::from_label_selector(*json)) selector->matches(lookup);
  }
  return 0;
}
