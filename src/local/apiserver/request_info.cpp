#include "local/apiserver/request_info.h"

#include <utility>
#include <vector>

#include "base/strings.h"

namespace grapnel::local {
namespace {

std::string verb_of(std::string_view method, const RequestInfo& info, const http::Target& target) {
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return info.name.empty() ? "deletecollection" : "delete";
  if (method != "GET" && method != "HEAD") return to_lower(method);
  if (!info.name.empty()) return "get";
  // Any word but these two means yes.
  const std::string watch = to_lower(target.get("watch"));
  return target.has("watch") && watch != "0" && watch != "false" ? "watch" : "list";
}

// Everything after the n-th slash-separated part, with its leading slash.
std::string rest_after(std::string_view path, size_t parts) {
  size_t position = 0;
  for (size_t i = 0; i < parts; ++i) {
    position = path.find('/', position + 1);
    if (position == std::string_view::npos) return "";
  }
  return std::string(path.substr(position));
}

}  // namespace

RequestInfo parse_request_info(std::string_view method, const http::Target& target) {
  RequestInfo info;
  info.path = target.path;
  std::vector<std::string_view> parts;
  for (const std::string_view part : split(target.path, '/')) {
    if (!part.empty()) parts.push_back(part);
  }
  size_t used = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    info.version = parts[1];
    used = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    info.group = parts[1];
    info.version = parts[2];
    used = 3;
  } else {
    info.verb = to_lower(method);
    return info;
  }
  // The old watch path: /api/v1/watch/namespaces/x/pods.
  bool old_watch = false;
  if (parts[used] == "watch" && parts.size() > used + 1) {
    old_watch = true;
    ++used;
  }
  info.is_resource = true;
  if (parts[used] == "namespaces" && parts.size() > used + 1) {
    info.ns = parts[used + 1];
    const bool own =
        parts.size() > used + 2 && (parts[used + 2] == "status" || parts[used + 2] == "finalize");
    if (parts.size() > used + 2 && !own) used += 2;
  }
  info.plural = parts[used];
  if (parts.size() > used + 1) info.name = parts[used + 1];
  if (parts.size() > used + 2) info.subresource = parts[used + 2];
  if (parts.size() > used + 3) info.rest = rest_after(target.path, used + 3);
  info.verb = old_watch ? "watch" : verb_of(method, info, target);
  return info;
}

Accepted parse_accept(std::string_view header) {
  Accepted accepted;
  if (trim(header).empty()) return accepted;
  bool any = false;
  for (const std::string_view clause : split(header, ',')) {
    std::string type;
    std::string as;
    std::string group;
    std::string version;
    for (const std::string_view raw : split(clause, ';')) {
      const std::string_view part = trim(raw);
      if (type.empty()) {
        type = to_lower(part);
      } else if (part.starts_with("as=")) {
        as = part.substr(3);
      } else if (part.starts_with("g=")) {
        group = part.substr(2);
      } else if (part.starts_with("v=")) {
        version = part.substr(2);
      }
    }
    if (type != "application/json" && type != "*/*" && type != "application/*" &&
        type != "application/yaml") {
      continue;
    }
    if (as == "APIGroupDiscoveryList") {
      if (group == "apidiscovery.k8s.io" && !accepted.aggregated_discovery && !any) {
        accepted.aggregated_discovery = true;
        accepted.discovery_version = version;
      }
      continue;
    }
    const bool table = as == "Table";
    const bool partial = as == "PartialObjectMetadata" || as == "PartialObjectMetadataList";
    if (!as.empty() && !((table || partial) && group == "meta.k8s.io" &&
                         (version == "v1" || version == "v1beta1"))) {
      continue;  // a form we do not know; the client may take another
    }
    if (std::exchange(any, true)) continue;
    if (table) accepted.form = Form::kTable;
    if (partial) accepted.form = Form::kPartial;
  }
  accepted.acceptable = any || accepted.aggregated_discovery;
  return accepted;
}

}  // namespace grapnel::local
