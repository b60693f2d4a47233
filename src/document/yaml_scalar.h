// What an unquoted YAML scalar means, by the rules of the YAML library in kubectl: YAML 1.1 with
// Go's notations of integers. Used by the reader, and by the writer to know what it must quote.
#pragma once

#include <string>
#include <string_view>

#include "document/json.h"

namespace grapnel {

enum class YamlType { kNull, kBool, kInt, kFloat, kTimestamp, kString };
std::string_view to_string(YamlType type);  // "!!int", as errors name it

struct YamlScalar {
  YamlType type = YamlType::kString;
  Json value;  // a double for kFloat (also .inf and .nan), the text for kTimestamp
};
YamlScalar resolve_yaml_scalar(std::string_view text);

// 1:30:00, a number for other YAML 1.1 parsers.
bool is_base60(std::string_view text);

// As Go's %g, the shortest: 1.5, 1e+06. Mapping keys are shortened as if they were 32-bit floats.
std::string go_float_text(double value);
std::string go_float_text(float value);

}  // namespace grapnel
