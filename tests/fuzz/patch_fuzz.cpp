// Patches: "document NUL patch". A patch that fails changes nothing; the difference of two
// documents leads from one to the other.
#include "document/patch.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

namespace {

bool has_null(const Json& value) {
  if (const auto* array = value.if_array()) {
    for (const Json& element : *array) {
      if (has_null(element)) return true;
    }
  }
  if (const auto* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      if (has_null(member)) return true;
    }
  }
  return value.is_null();
}

void check_difference(const Json& before, const Json& after) {
  if (has_null(after)) return;  // a merge patch cannot set a null
  Json target = before;
  if (const auto patch = merge_patch_between(before, after)) apply_merge_patch(target, *patch);
  fuzz::require(equal(target, after), "the difference leads from one document to the other");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  const auto document = parse_json(fuzz::take_part(rest, '\0'));
  const auto patch = parse_json(rest);
  if (!document || !patch) return 0;
  check_difference(*document, *patch);

  Json merged = *document;
  apply_merge_patch(merged, *patch);
  check_difference(*document, merged);

  Json edited = *document;
  if (!apply_json_patch(edited, *patch)) {
    fuzz::require(edited == *document, "a JSON patch that fails changes nothing");
  } else {
    fuzz::require(parse_json(to_text(edited)).has_value(), "what a JSON patch makes is JSON");
  }
  for (const std::string_view kind : {"Pod", "Deployment", "Service"}) {
    Json target = *document;
    if (!apply_strategic_merge_patch(target, *patch, kind)) {
      fuzz::require(target == *document, "a strategic patch that fails changes nothing");
    }
  }
  return 0;
}
