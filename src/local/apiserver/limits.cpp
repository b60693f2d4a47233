#include "local/apiserver/limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "local/apiserver/metadata.h"
#include "local/limits/limit_range.h"
#include "local/limits/quota.h"

namespace grapnel::local {
namespace {

std::vector<Json> stored_in(const Api& api, std::string_view collection, const std::string& ns) {
  std::vector<Json> objects;
  const auto page = api.store.list(collection, {.prefix = ns + "/"});
  if (!page) return objects;
  for (const ObjectPtr& item : page->items) {
    if (auto object = parse_json(item->json)) objects.push_back(std::move(*object));
  }
  return objects;
}

bool has_limits(const ResourceType& type) {
  return type.group.empty() && (type.plural == "pods" || type.plural == "persistentvolumeclaims");
}

Answer<> check_limit_ranges(const Api& api, const Call& call, const std::string& ns,
                            const Json& object) {
  std::vector<std::string> problems;
  for (const Json& range : stored_in(api, "limitranges", ns)) {
    for (auto& problem : limit_violations(object, call.type->plural, range)) {
      problems.push_back(std::move(problem));
    }
  }
  if (problems.empty()) return {};
  const std::string text =
      problems.size() == 1 ? problems.front() : fmt::format("[{}]", fmt::join(problems, ", "));
  return Refusal(forbidden(call.what(), meta_text(object, "name"), text));
}

bool limits(const Quota& quota, const ResourceType& type, const Json& object) {
  return !quota.limited(usage_of(object, type.group, type.plural)).empty();
}

Answer<> check_quotas(const Api& api, const Call& call, const std::string& ns, const Json& object) {
  const ResourceType& type = *call.type;
  for (const Json& stored : stored_in(api, "resourcequotas", ns)) {
    const Quota quota = Quota::from_json(stored);
    if (!limits(quota, type, object)) continue;
    Usage used;
    for (const Json& other : stored_in(api, type.collection(), ns)) {
      if (quota.covers(other, type.plural)) add(used, usage_of(other, type.group, type.plural));
    }
    if (const auto why = why_beyond(quota, used, object, type.group, type.plural)) {
      return Refusal(forbidden(call.what(), meta_text(object, "name"), *why));
    }
  }
  return {};
}

}  // namespace

void set_limit_defaults(const Api& api, const Call& call, const std::string& ns, Json& object) {
  if (!call.type->group.empty() || call.type->plural != "pods") return;
  for (const Json& range : stored_in(api, "limitranges", ns)) set_limit_defaults(object, range);
}

bool is_counted(const Api& api, const Call& call, const std::string& ns, const Json& object) {
  return call.type->namespaced &&
         std::ranges::any_of(stored_in(api, "resourcequotas", ns), [&](const Json& stored) {
           return limits(Quota::from_json(stored), *call.type, object);
         });
}

Answer<> check_limits(const Api& api, const Call& call, const std::string& ns, const Json& object) {
  if (!call.type->namespaced) return {};
  if (has_limits(*call.type)) {
    if (auto checked = check_limit_ranges(api, call, ns, object); !checked) return checked;
  }
  return check_quotas(api, call, ns, object);
}

}  // namespace grapnel::local
