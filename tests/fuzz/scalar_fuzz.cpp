// The small notations of base/: quantities, durations, times, names, encodings.
#include "base/quantity.h"
#include "base/strings.h"
#include "base/time.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  if (const auto quantity = Quantity::parse(text)) {
    fuzz::require(Quantity::parse(quantity->text()) == *quantity, "quantities read back");
    const Quantity doubled = *quantity + *quantity;
    fuzz::require(doubled == *quantity * 2 && (doubled - *quantity) == *quantity, "and add up");
  }
  if (const auto length = parse_go_duration(text)) format_age(*length);
  if (const auto length = parse_manifest_duration(text)) format_age(*length);
  if (const auto time = parse_time(text)) {
    const auto again = parse_time(format_micro_time(*time));
    const bool in_four_digits = format_micro_time(*time).size() == 27;
    fuzz::require(in_four_digits && again.has_value(), "times read back");
  }
  if (const auto bytes = base64_decode(text)) {
    fuzz::require(base64_decode(base64_encode(*bytes)) == *bytes, "base64 reads back");
  }
  fuzz::require(percent_decode(percent_encode(text)) == text, "percent-encoding reads back");
  percent_decode(text);
  for (const auto& why :
       {why_not_dns1123_label(text), why_not_dns1123_subdomain(text), why_not_dns1035_label(text),
        why_not_label_value(text), why_not_qualified_name(text)}) {
    fuzz::require(why.empty() || text.empty() || why.size() > 10, "a refusal says why");
  }
  return 0;
}
