#include "local/apiserver/openapi.h"

#include <fmt/format.h>

#include "local/apiserver/crd.h"
#include "local/apiserver/openapi_schema.h"

namespace grapnel::local {
namespace {

std::string root_of(const std::string& group, const std::string& version) {
  return group.empty() ? "api/" + version : "apis/" + group + "/" + version;
}

JsonObject group_version_kind(const ResourceType& type) {
  return {{"group", type.group}, {"version", type.version}, {"kind", type.kind}};
}

// Schemas are named as Go's package paths turned round: io.k8s.api.core.v1.Pod.
std::string schema_name(const ResourceType& type) {
  const std::string group = type.group.empty() ? "core" : type.group;
  std::string reversed;
  size_t end = group.size();
  while (end > 0) {
    const size_t dot = group.rfind('.', end - 1);
    const size_t start = dot == std::string::npos ? 0 : dot + 1;
    reversed += group.substr(start, end - start) + ".";
    if (start == 0) break;
    end = dot;
  }
  if (!type.custom) {
    return fmt::format("io.k8s.api.{}.{}.{}", group.substr(0, group.find('.')), type.version,
                       type.kind);
  }
  return fmt::format("{}{}.{}", reversed, type.version, type.kind);
}

JsonObject operation(const ResourceType& type, std::string_view action, bool write) {
  JsonArray parameters;
  if (write) {
    for (const char* name : {"dryRun", "fieldManager", "fieldValidation", "force"}) {
      parameters.emplace_back(
          JsonObject{{"name", name}, {"in", "query"}, {"schema", JsonObject{{"type", "string"}}}});
    }
  }
  return {{"x-kubernetes-action", action},
          {"x-kubernetes-group-version-kind", group_version_kind(type)},
          {"parameters", std::move(parameters)},
          {"responses", JsonObject{{"200", JsonObject{{"description", "OK"}}}}}};
}

Json schema_of(const ResourceType& type) {
  Json schema = JsonObject{{"type", "object"}};
  if (type.custom && type.custom->schema.is_object()) schema = type.custom->schema;
  schema.as_object()["x-kubernetes-group-version-kind"] = JsonArray{group_version_kind(type)};
  return schema;
}

Json document_v3(const Api& api, const std::string& group, const std::string& version) {
  JsonObject paths;
  JsonObject schemas;
  for (const TypePtr& type : api.registry.of(group, version)) {
    const std::string root = "/" + root_of(group, version);
    const std::string collection = type->namespaced
                                       ? root + "/namespaces/{namespace}/" + type->plural
                                       : root + "/" + type->plural;
    paths[collection] = JsonObject{{"get", operation(*type, "list", false)},
                                   {"post", operation(*type, "post", true)}};
    paths[collection + "/{name}"] = JsonObject{{"get", operation(*type, "get", false)},
                                               {"put", operation(*type, "put", true)},
                                               {"patch", operation(*type, "patch", true)},
                                               {"delete", operation(*type, "delete", false)}};
    if (const kube::TypeInfo* shape = kube::type_of_kind(type->group, type->version, type->kind)) {
      add_schema(*shape, schemas);
      JsonObject& own = schemas[local::schema_name(*shape)].as_object();
      // Every kind says what it is.
      for (const char* field : {"apiVersion", "kind"}) {
        ensure_object(own, "properties")[field] = JsonObject{{"type", "string"}};
      }
      own["x-kubernetes-group-version-kind"] = JsonArray{group_version_kind(*type)};
    } else {
      schemas[schema_name(*type)] = schema_of(*type);
    }
  }
  return JsonObject{{"openapi", "3.0.0"},
                    {"info", JsonObject{{"title", "Kubernetes"}, {"version", "v1.33.0"}}},
                    {"paths", std::move(paths)},
                    {"components", JsonObject{{"schemas", std::move(schemas)}}}};
}

Json index_v3(const Api& api) {
  JsonObject paths;
  for (const Registry::Group& group : api.registry.groups()) {
    for (const std::string& version : group.versions) {
      const std::string root = root_of(group.name, version);
      paths[root] = JsonObject{{"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={}", root,
                                                                 api.registry.revision())}};
    }
  }
  return JsonObject{{"paths", std::move(paths)}};
}

Json document_v2(const Api& api) {
  JsonObject definitions;
  for (const TypePtr& type : api.registry.all()) definitions[schema_name(*type)] = schema_of(*type);
  return JsonObject{{"swagger", "2.0"},
                    {"info", JsonObject{{"title", "Kubernetes"}, {"version", "v1.33.0"}}},
                    {"paths", JsonObject()},
                    {"definitions", std::move(definitions)}};
}

// kubectl still reads this one for a List, in protobuf (gnostic's Document): a document that knows
// no kind makes it leave validation to the server.
Reply reply_v2(const Api& api, const Call& call) {
  constexpr std::string_view kAsked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
  if (call.request->headers.get("accept").find(kAsked) == std::string_view::npos) {
    return {.body = to_text(document_v2(api))};
  }
  const auto text_field = [](char number, std::string_view text) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(text.size())}.append(
        text);
  };
  // Go's own parser does not take the @ that its client sends.
  return {.body = text_field(1, "2.0") +
                  text_field(2, text_field(1, "Kubernetes") + text_field(2, "v1.33.0")),
          .content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"};
}

}  // namespace

std::optional<Answer<Reply>> answer_openapi(const Api& api, const Call& call) {
  constexpr std::string_view kV3 = "/openapi/v3";
  const std::string& path = call.target.path;
  if (path == "/openapi/v2") return Answer<Reply>(reply_v2(api, call));
  if (path == kV3) return Answer<Reply>(Reply{.body = to_text(index_v3(api))});
  if (!path.starts_with(kV3)) return std::nullopt;
  for (const Registry::Group& group : api.registry.groups()) {
    for (const std::string& version : group.versions) {
      if (path == fmt::format("{}/{}", kV3, root_of(group.name, version))) {
        return Answer<Reply>(Reply{.body = to_text(document_v3(api, group.name, version))});
      }
    }
  }
  return std::nullopt;
}

}  // namespace grapnel::local
