// The columns of each kind and what stands in them.

#include "local/apiserver/metadata.h"
#include "local/apiserver/table.h"

namespace grapnel::local {
namespace {

std::string age_of(const Json& object, Time now) {
  const auto created = parse_time(meta_text(object, "creationTimestamp"));
  return created ? format_age(now - *created) : "<unknown>";
}

}  // namespace

std::vector<Column> columns_of(const ResourceType&) {
  return {{.name = "Name", .format = "name"}, {.name = "Age"}};
}

JsonArray cells_of(const ResourceType&, const Json& object, Time now) {
  return JsonArray{Json(meta_text(object, "name")), Json(age_of(object, now))};
}

}  // namespace grapnel::local
