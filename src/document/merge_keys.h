// How the fields of Kubernetes' built-in types merge in a strategic merge patch.
#pragma once

#include <string_view>

namespace grapnel {

enum class MergeStrategy {
  kDefault,  // objects merge, lists are replaced
  kMerge,    // a list merges by its key; without a key it is a set of scalars
  kReplace,  // an object that is replaced whole
};

struct MergeRule {
  std::string_view type;   // PodSpec
  std::string_view field;  // containers
  std::string_view child;  // the type of the field or of its elements, where it has rules; or ""
  MergeStrategy strategy = MergeStrategy::kDefault;
  std::string_view key;
};

// The rule of that field; kDefault without a child when there is none.
MergeRule merge_rule(std::string_view type, std::string_view field);

// Whether a kind is built into Kubernetes; its type has the same name.
bool is_built_in_kind(std::string_view kind);

}  // namespace grapnel
