#include "local/apiserver/table.h"

#include "local/apiserver/metadata.h"

namespace grapnel::local {

TableOptions TableOptions::from(const Call& call, Time now) {
  TableOptions options;
  const std::string_view include = call.query("includeObject");
  if (include == "Object") options.include = Include::kObject;
  if (include == "None") options.include = Include::kNone;
  options.now = now;
  return options;
}

Json partial_of(const Json& object) {
  const Json* meta = find(object, "metadata");
  return JsonObject{{"kind", "PartialObjectMetadata"},
                    {"apiVersion", "meta.k8s.io/v1"},
                    {"metadata", meta == nullptr ? Json(JsonObject()) : *meta}};
}

Json table_of(const ResourceType& type, const std::vector<Json>& objects,
              const TableOptions& options) {
  JsonObject meta;
  meta["resourceVersion"] = options.version.empty() && objects.size() == 1
                                ? std::string(meta_text(objects.front(), "resourceVersion"))
                                : options.version;
  if (!options.next.empty()) meta["continue"] = options.next;
  if (options.remaining > 0) meta["remainingItemCount"] = options.remaining;
  JsonObject table{{"kind", "Table"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", meta}};
  if (options.no_headers) {
    table["columnDefinitions"] = nullptr;
  } else {
    JsonArray columns;
    for (const Column& column : columns_of(type)) {
      columns.emplace_back(JsonObject{{"name", column.name},
                                      {"type", column.type},
                                      {"format", column.format},
                                      {"description", column.description},
                                      {"priority", column.priority}});
    }
    table["columnDefinitions"] = std::move(columns);
  }
  JsonArray rows;
  for (const Json& object : objects) {
    JsonObject row{{"cells", cells_of(type, object, options.now)}};
    if (options.include == TableOptions::Include::kObject) row["object"] = object;
    if (options.include == TableOptions::Include::kMetadata) row["object"] = partial_of(object);
    rows.emplace_back(std::move(row));
  }
  table["rows"] = std::move(rows);
  return table;
}

}  // namespace grapnel::local
