#include "local/apiserver/discovery.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"

namespace grapnel::local {
namespace {

const std::vector<std::string> kAllVerbs = {"create", "delete", "deletecollection", "get",
                                            "list",   "patch",  "update",           "watch"};

JsonArray list_of(const std::vector<std::string>& texts) {
  JsonArray list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

const std::vector<std::string>& verbs_of(const ResourceType& type) {
  return type.verbs.empty() ? kAllVerbs : type.verbs;
}

std::string group_version(const std::string& group, const std::string& version) {
  return group.empty() ? version : group + "/" + version;
}

// APIResourceList.
Json resource_list(const Api& api, const std::string& group, const std::string& version) {
  JsonArray resources;
  for (const TypePtr& type : api.registry.of(group, version)) {
    JsonObject one{{"name", type->plural},
                   {"singularName", type->singular},
                   {"namespaced", type->namespaced},
                   {"kind", type->kind},
                   {"verbs", list_of(verbs_of(*type))}};
    if (!type->short_names.empty()) one["shortNames"] = list_of(type->short_names);
    if (!type->categories.empty()) one["categories"] = list_of(type->categories);
    if (type->stored) one["storageVersionHash"] = base64_encode(type->collection().substr(0, 8));
    resources.emplace_back(std::move(one));
    for (const Subresource& sub : type->subresources) {
      JsonObject below{{"name", type->plural + "/" + sub.name},
                       {"singularName", ""},
                       {"namespaced", type->namespaced}};
      if (!sub.version.empty()) {
        below["group"] = sub.group;
        below["version"] = sub.version;
      }
      below["kind"] = sub.kind;
      below["verbs"] = list_of(sub.verbs);
      resources.emplace_back(std::move(below));
    }
  }
  return JsonObject{{"kind", "APIResourceList"},
                    {"apiVersion", "v1"},
                    {"groupVersion", group_version(group, version)},
                    {"resources", std::move(resources)}};
}

JsonObject api_group(const Registry::Group& group) {
  JsonArray versions;
  for (const std::string& version : group.versions) {
    versions.emplace_back(
        JsonObject{{"groupVersion", group_version(group.name, version)}, {"version", version}});
  }
  const Json preferred = versions.front();
  return {{"name", group.name}, {"versions", std::move(versions)}, {"preferredVersion", preferred}};
}

// One resource of an APIVersionDiscovery.
JsonObject aggregated_resource(const ResourceType& type) {
  JsonObject resource{
      {"resource", type.plural},
      {"responseKind",
       JsonObject{{"group", type.group}, {"version", type.version}, {"kind", type.kind}}},
      {"scope", type.namespaced ? "Namespaced" : "Cluster"},
      {"singularResource", type.singular},
      {"verbs", list_of(verbs_of(type))}};
  if (!type.short_names.empty()) resource["shortNames"] = list_of(type.short_names);
  if (!type.categories.empty()) resource["categories"] = list_of(type.categories);
  if (type.subresources.empty()) return resource;
  JsonArray below;
  for (const Subresource& sub : type.subresources) {
    const bool own = sub.version.empty();
    below.emplace_back(
        JsonObject{{"subresource", sub.name},
                   {"responseKind", JsonObject{{"group", own ? type.group : sub.group},
                                               {"version", own ? type.version : sub.version},
                                               {"kind", sub.kind}}},
                   {"verbs", list_of(sub.verbs)}});
  }
  resource["subresources"] = std::move(below);
  return resource;
}

Json aggregated(const Api& api, bool core, const std::string& discovery_version) {
  JsonArray items;
  for (const Registry::Group& group : api.registry.groups()) {
    if (group.name.empty() != core) continue;
    JsonArray versions;
    for (const std::string& version : group.versions) {
      JsonArray resources;
      for (const TypePtr& type : api.registry.of(group.name, version)) {
        resources.emplace_back(aggregated_resource(*type));
      }
      versions.emplace_back(JsonObject{
          {"version", version}, {"resources", std::move(resources)}, {"freshness", "Current"}});
    }
    JsonObject meta;
    if (!group.name.empty()) meta["name"] = group.name;
    meta["creationTimestamp"] = nullptr;
    items.emplace_back(
        JsonObject{{"metadata", std::move(meta)}, {"versions", std::move(versions)}});
  }
  return JsonObject{{"kind", "APIGroupDiscoveryList"},
                    {"apiVersion", "apidiscovery.k8s.io/" + discovery_version},
                    {"metadata", JsonObject()},
                    {"items", std::move(items)}};
}

Reply aggregated_reply(const Api& api, const Call& call, bool core) {
  const std::string& version = call.accepted.discovery_version;
  return Reply{.body = to_text(aggregated(api, core, version)),
               .content_type = "application/json;g=apidiscovery.k8s.io;v=" + version +
                               ";as=APIGroupDiscoveryList"};
}

}  // namespace

std::optional<Answer<Reply>> answer_discovery(const Api& api, const Call& call) {
  std::vector<std::string_view> parts;
  for (const std::string_view part : split(call.target.path, '/')) {
    if (!part.empty()) parts.push_back(part);
  }
  const auto reply = [](const Json& body) { return Answer<Reply>(Reply{.body = to_text(body)}); };
  if (parts.size() == 1 && parts[0] == "api") {
    if (call.accepted.aggregated_discovery) return aggregated_reply(api, call, true);
    return reply(
        JsonObject{{"kind", "APIVersions"},
                   {"versions", JsonArray{Json("v1")}},
                   {"serverAddressByClientCIDRs",
                    JsonArray{JsonObject{
                        {"clientCIDR", "0.0.0.0/0"},
                        {"serverAddress", std::string(call.request->headers.get("host"))}}}}});
  }
  if (parts.size() == 2 && parts[0] == "api" && parts[1] == "v1") {
    return reply(resource_list(api, "", "v1"));
  }
  if (parts.empty() || parts[0] != "apis" || parts.size() > 3) return std::nullopt;
  if (parts.size() == 1) {
    if (call.accepted.aggregated_discovery) return aggregated_reply(api, call, false);
    JsonArray groups;
    for (const Registry::Group& group : api.registry.groups()) {
      if (!group.name.empty()) groups.emplace_back(api_group(group));
    }
    return reply(
        JsonObject{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}});
  }
  for (const Registry::Group& group : api.registry.groups()) {
    if (group.name != parts[1] || group.name.empty()) continue;
    if (parts.size() == 2) {
      JsonObject body{{"kind", "APIGroup"}, {"apiVersion", "v1"}};
      for (auto& [key, value] : api_group(group)) body[key] = value;
      return reply(body);
    }
    if (std::find(group.versions.begin(), group.versions.end(), parts[2]) != group.versions.end()) {
      return reply(resource_list(api, group.name, std::string(parts[2])));
    }
  }
  return std::nullopt;
}

}  // namespace grapnel::local
