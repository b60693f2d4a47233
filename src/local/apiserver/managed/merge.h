// Objects and their field sets: what an object contains, what differs between two, laying one over
// the other, and removing what its last owner dropped.
#pragma once

#include "document/json.h"
#include "local/apiserver/managed/field_set.h"
#include "local/apiserver/managed/merge_type.h"

namespace grapnel::local {

FieldSet fields_of(const Json& object, const MergeType& type);

// The first element whose key occurs twice in a list though it may occur once, in words; "": none.
std::string repeated_element(const Json& value, const MergeType& type,
                             const std::string& path = "");

struct Difference {
  FieldSet added;
  FieldSet modified;
  FieldSet removed;
};
Difference compare(const Json& before, const Json& after, const MergeType& type);

// `config` laid over `live`: maps and keyed lists merge, all else is replaced.
Json merge(const Json& live, const Json& config, const MergeType& type);

// Takes out what `last` holds and `managed` does not.
void drop_unowned(Json& object, const MergeType& type, const FieldSet& last,
                  const FieldSet& managed);

}  // namespace grapnel::local
