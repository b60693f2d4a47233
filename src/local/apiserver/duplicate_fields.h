// Fields that occur twice in one object of a JSON text. Parsers keep the last one and say nothing;
// a client that asks for strict validation wants to know.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace grapnel::local {

// Their paths ("data.k", "spec.containers[0].name"), in order. The text must be valid JSON.
std::vector<std::string> duplicate_fields(std::string_view json);

}  // namespace grapnel::local
