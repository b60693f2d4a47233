// Checks objects of our kinds in a file, as admission would when they are applied: the same schema,
// the same rules. Fields that the cluster would drop are faults, too.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "document/yaml.h"

namespace grapnel::cli {

// Whether any of these documents is a JobSet or an Experiment; a manifest is neither.
bool holds_our_objects(const std::vector<YamlDocument>& documents);

// A line for each document that says it is valid, or of a kind that is not ours. An error has the
// faults of all of them, each with its place.
Result<std::vector<std::string>> check_objects(const std::vector<YamlDocument>& documents,
                                               std::string_view file);

}  // namespace grapnel::cli
