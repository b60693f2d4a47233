// Schemas of definitions and their objects: "schema \n object". Pruned and filled in, an object
// stays so.
#include "local/apiserver/schema.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  const auto schema = parse_json(fuzz::take_part(rest, '\n'));
  auto object = parse_json(rest);
  if (!schema || !schema->is_object() || !object || !object->is_object()) return 0;
  local::FieldErrors errors;
  local::check_schema(*schema, "schema", errors);
  if (!errors.empty()) return 0;
  (void)local::prune(*schema, *object);
  fuzz::require(local::prune(*schema, *object).empty(), "nothing is left to prune");
  local::fill_defaults(*schema, *object);
  local::validate_schema(*schema, *object, errors);
  return 0;
}
