// The three patch formats of the Kubernetes API, and the difference of two documents as a merge
// patch.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "document/json.h"

namespace grapnel {

// RFC 7386. Never fails.
void apply_merge_patch(Json& target, const Json& patch);
// The smallest merge patch that turns `before` into `after`; nothing when they are equal.
std::optional<Json> merge_patch_between(const Json& before, const Json& after);

// RFC 6902. The target is unchanged when it fails.
Result<> apply_json_patch(Json& target, const Json& patch);
// Operations that turn `before` into `after`, down to the members that differ; empty when they are
// equal. Lists of different lengths are replaced whole.
JsonArray json_patch_between(const Json& before, const Json& after);

// Strategic merge patch, for the built-in kinds: lists merge by key as Kubernetes' own types say
// ($patch, $retainKeys, $deleteFromPrimitiveList, $setElementOrder too). `kind` is "Pod", "Job" …;
// for a kind that is not built in, Kubernetes refuses this patch (UnsupportedMediaType), and so do
// we.
Result<> apply_strategic_merge_patch(Json& target, const Json& patch, std::string_view kind);

// How the list at this field path (spec.template.spec.containers) of a built-in kind merges: its
// key,
// "" for a list of scalars that merges as a set, nothing for a list that is replaced whole.
std::optional<std::string_view> merge_key_of(std::string_view kind, std::string_view path);

}  // namespace grapnel
