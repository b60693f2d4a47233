// The columns of each kind, and what stands in them. Names, order and texts are Kubernetes' own:
// they are what users read in `kubectl get`.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/strings.h"
#include "document/selector.h"
#include "local/apiserver/crd.h"
#include "local/apiserver/json_path.h"
#include "local/apiserver/metadata.h"
#include "local/apiserver/pod_cells.h"
#include "local/apiserver/table.h"

namespace grapnel::local {
namespace {

using Cells = std::function<JsonArray(const Json& object, Time now)>;
struct Printer {
  std::vector<Column> columns;
  Cells cells;
};

Json age(const Json& object, Time now) {
  return Json(since(meta_text(object, "creationTimestamp"), now));
}

Json text(const Json* value, std::string_view missing = "") {
  const std::string_view found = string_or(value);
  return Json(found.empty() ? missing : found);
}

Json name(const Json& object) {
  return Json(meta_text(object, "name"));
}

int64_t members(const Json* value) {
  if (value == nullptr) return 0;
  if (value->is_object()) return static_cast<int64_t>(value->as_object().size());
  return value->is_array() ? static_cast<int64_t>(value->as_array().size()) : 0;
}

std::string containers(const Json* list, const char* field) {
  std::vector<std::string> texts;
  if (list != nullptr && list->is_array()) {
    for (const Json& one : list->as_array()) texts.emplace_back(string_or(find(one, field)));
  }
  return join(texts, ",");
}

std::string selector(const Json* label_selector) {
  if (label_selector == nullptr) return "<none>";
  const auto parsed = Selector::from_label_selector(*label_selector);
  if (!parsed) return "<error>";
  return parsed->empty() ? "<none>" : parsed->text();
}

std::string labels_text(const Json* labels) {
  std::map<std::string, std::string> sorted;
  if (labels != nullptr && labels->is_object()) {
    for (const auto& entry : labels->as_object()) {
      sorted[entry.key()] = string_or(&entry.value());
    }
  }
  std::vector<std::string> texts;
  for (const auto& [key, value] : sorted) texts.push_back(key + "=" + value);
  return texts.empty() ? "<none>" : join(texts, ",");
}

std::string texts_of(const Json* list, std::string_view separator = ",") {
  std::vector<std::string> texts;
  if (list != nullptr && list->is_array()) {
    for (const Json& one : list->as_array()) texts.emplace_back(string_or(&one));
  }
  return join(texts, separator);
}

bool has_condition(const Json& object, std::string_view type) {
  const Json* list = at(object, "status", "conditions");
  if (list == nullptr || !list->is_array()) return false;
  return std::any_of(list->as_array().begin(), list->as_array().end(), [type](const Json& one) {
    return string_or(find(one, "type")) == type && string_or(find(one, "status")) == "True";
  });
}

Column first() {
  return {.name = "Name",
          .format = "name",
          .description =
              "Name must be unique within a namespace. Is required when creating resources, "
              "although some resources may allow a client to request the generation of an "
              "appropriate name automatically. Name is primarily intended for creation idempotence "
              "and configuration definition. Cannot be updated. More info: "
              "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"};
}
Column plain(std::string column, std::string type = "string") {
  return {.name = std::move(column), .type = std::move(type)};
}
Column wide(std::string column) {
  return {.name = std::move(column), .priority = 1};
}

std::string job_status(const Json& job) {
  if (has_condition(job, "Complete")) return "Complete";
  if (has_condition(job, "Failed")) return "Failed";
  if (is_being_deleted(job)) return "Terminating";
  if (has_condition(job, "Suspended")) return "Suspended";
  if (has_condition(job, "FailureTarget")) return "FailureTarget";
  return "Running";
}

std::string job_completions(const Json& job) {
  const int64_t succeeded = int_or(at(job, "status", "succeeded"));
  const Json* completions = at(job, "spec", "completions");
  if (completions != nullptr && completions->is_number()) {
    return fmt::format("{}/{}", succeeded, int_or(completions));
  }
  const int64_t parallelism = int_or(at(job, "spec", "parallelism"));
  if (parallelism > 1) return fmt::format("{}/1 of {}", succeeded, parallelism);
  return fmt::format("{}/1", succeeded);
}

std::string job_duration(const Json& job, Time now) {
  const auto start = parse_time(string_or(at(job, "status", "startTime")));
  if (!start) return "";
  const auto end = parse_time(string_or(at(job, "status", "completionTime")));
  return format_age(end.value_or(now) - *start);
}

std::string service_ports(const Json& service) {
  std::vector<std::string> texts;
  const Json* ports = at(service, "spec", "ports");
  if (ports != nullptr && ports->is_array()) {
    for (const Json& port : ports->as_array()) {
      const int64_t number = int_or(find(port, "port"));
      const int64_t node = int_or(find(port, "nodePort"));
      const std::string_view protocol = string_or(find(port, "protocol"));
      texts.push_back(node > 0 ? fmt::format("{}:{}/{}", number, node, protocol)
                               : fmt::format("{}/{}", number, protocol));
    }
  }
  return texts.empty() ? "<none>" : join(texts, ",");
}

std::string service_external(const Json& service) {
  const std::string_view type = string_or(at(service, "spec", "type"));
  if (type == "ExternalName") return std::string(string_or(at(service, "spec", "externalName")));
  const std::string addresses = texts_of(at(service, "spec", "externalIPs"));
  if (!addresses.empty()) return addresses;
  return type == "LoadBalancer" ? "<pending>" : "<none>";
}

std::string endpoints_text(const Json& endpoints) {
  const Json* subsets = find(endpoints, "subsets");
  if (members(subsets) == 0) return "<none>";
  std::vector<std::string> list;
  size_t count = 0;
  for (const Json& subset : subsets->as_array()) {
    const Json* addresses = find(subset, "addresses");
    const Json* ports = find(subset, "ports");
    if (addresses == nullptr || !addresses->is_array()) continue;
    const size_t port_count = std::max<size_t>(1, static_cast<size_t>(members(ports)));
    for (size_t i = 0; i < port_count; ++i) {
      for (const Json& address : addresses->as_array()) {
        ++count;
        if (list.size() == 3) continue;
        std::string one(string_or(find(address, "ip")));
        if (members(ports) > 0) {
          one += fmt::format(":{}", int_or(find(ports->as_array()[i], "port")));
        }
        list.push_back(std::move(one));
      }
    }
  }
  std::string result = join(list, ",");
  if (count > list.size()) result += fmt::format(" + {} more...", count - list.size());
  return result;
}

std::string slice_addresses(const Json& slice) {
  std::vector<std::string> list;
  size_t count = 0;
  const Json* endpoints = find(slice, "endpoints");
  if (endpoints != nullptr && endpoints->is_array()) {
    for (const Json& endpoint : endpoints->as_array()) {
      const Json* addresses = find(endpoint, "addresses");
      if (addresses == nullptr || !addresses->is_array()) continue;
      for (const Json& address : addresses->as_array()) {
        if (++count <= 3) list.emplace_back(string_or(&address));
      }
    }
  }
  if (list.empty()) return "<unset>";
  std::string result = join(list, ",");
  if (count > 3) result += fmt::format(" + {} more...", count - 3);
  return result;
}

std::string slice_ports(const Json& slice) {
  std::vector<std::string> list;
  const Json* ports = find(slice, "ports");
  if (ports != nullptr && ports->is_array()) {
    for (const Json& port : ports->as_array()) {
      const Json* number = find(port, "port");
      list.push_back(number == nullptr || number->is_null() ? "*" : std::to_string(int_or(number)));
    }
  }
  return list.empty() ? "<unset>" : join(list, ",");
}

std::string node_status(const Json& node) {
  std::string status = "Unknown";
  const Json* conditions = at(node, "status", "conditions");
  if (conditions != nullptr && conditions->is_array()) {
    for (const Json& one : conditions->as_array()) {
      if (string_or(find(one, "type")) != "Ready") continue;
      status = string_or(find(one, "status")) == "True" ? "Ready" : "NotReady";
    }
  }
  if (bool_or(at(node, "spec", "unschedulable"))) status += ",SchedulingDisabled";
  return status;
}

std::string node_roles(const Json& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::set<std::string> roles;
  const Json* labels = at(node, "metadata", "labels");
  if (labels != nullptr && labels->is_object()) {
    for (const auto& entry : labels->as_object()) {
      const std::string_view key(entry.key());
      if (key.starts_with(kPrefix) && key.size() > kPrefix.size()) {
        roles.emplace(key.substr(kPrefix.size()));
      }
    }
  }
  return roles.empty() ? "<none>" : fmt::format("{}", fmt::join(roles, ","));
}

Json node_address(const Json& node, std::string_view type) {
  const Json* addresses = at(node, "status", "addresses");
  if (addresses != nullptr && addresses->is_array()) {
    for (const Json& one : addresses->as_array()) {
      if (string_or(find(one, "type")) == type) return text(find(one, "address"));
    }
  }
  return Json("<none>");
}

JsonArray event_cells(const Json& event, Time now) {
  // Either version of the kind may be asked for.
  const auto either = [&event](const char* core, const char* events) {
    const Json* value = find(event, core);
    return value != nullptr ? value : find(event, events);
  };
  const auto seen = [now](const Json* time) { return since(string_or(time), now); };
  std::string first_seen = seen(either("firstTimestamp", "deprecatedFirstTimestamp"));
  if (first_seen == "<unknown>") first_seen = seen(find(event, "eventTime"));
  std::string last_seen = seen(either("lastTimestamp", "deprecatedLastTimestamp"));
  if (last_seen == "<unknown>") last_seen = first_seen;
  int64_t count = int_or(either("count", "deprecatedCount"));
  if (const Json* series = find(event, "series"); series != nullptr && series->is_object()) {
    last_seen = seen(find(*series, "lastObservedTime"));
    count = int_or(find(*series, "count"));
  } else if (count == 0) {
    count = 1;
  }
  static const Json kNothing = JsonObject();
  const Json* found = either("involvedObject", "regarding");
  const Json& about = found == nullptr ? kNothing : *found;
  std::string target = to_lower(string_or(find(about, "kind")));
  if (const std::string_view of = string_or(find(about, "name")); !of.empty()) {
    target += "/" + std::string(of);
  }
  const Json* source = either("source", "deprecatedSource");
  std::string from(source == nullptr ? "" : string_or(find(*source, "component")));
  if (from.empty()) from = string_or(either("reportingComponent", "reportingController"));
  std::string host(source == nullptr ? "" : string_or(find(*source, "host")));
  if (host.empty()) host = string_or(find(event, "reportingInstance"));
  if (!host.empty()) from += ", " + host;
  return {Json(last_seen),
          text(find(event, "type")),
          text(find(event, "reason")),
          Json(target),
          text(find(about, "fieldPath")),
          Json(from),
          Json(trim(string_or(either("message", "note")))),
          Json(first_seen),
          Json(count),
          name(event)};
}

std::string access_modes(const Json* modes) {
  std::vector<std::string> texts;
  for (const auto& [mode, letters] :
       {std::pair("ReadWriteOnce", "RWO"), std::pair("ReadOnlyMany", "ROX"),
        std::pair("ReadWriteMany", "RWX"), std::pair("ReadWriteOncePod", "RWOP")}) {
    if (modes == nullptr || !modes->is_array()) continue;
    for (const Json& one : modes->as_array()) {
      if (string_or(&one) == mode) texts.emplace_back(letters);
    }
  }
  return join(texts, ",");
}

JsonArray claim_cells(const Json& claim, Time now) {
  const bool bound = !string_or(at(claim, "spec", "volumeName")).empty();
  return {name(claim),
          is_being_deleted(claim) ? Json("Terminating") : text(at(claim, "status", "phase")),
          text(at(claim, "spec", "volumeName")),
          bound ? text(at(claim, "status", "capacity", "storage")) : Json(""),
          Json(bound ? access_modes(at(claim, "status", "accessModes")) : ""),
          text(at(claim, "spec", "storageClassName")),
          text(at(claim, "spec", "volumeAttributesClassName"), "<unset>"),
          age(claim, now),
          text(at(claim, "spec", "volumeMode"), "<unset>")};
}

std::string subjects(const Json& binding, std::string_view kind) {
  std::vector<std::string> texts;
  const Json* list = find(binding, "subjects");
  if (list == nullptr || !list->is_array()) return "";
  for (const Json& one : list->as_array()) {
    if (string_or(find(one, "kind")) != kind) continue;
    std::string subject(string_or(find(one, "name")));
    if (kind == "ServiceAccount") {
      subject = std::string(string_or(find(one, "namespace"))) + "/" + subject;
    }
    texts.push_back(std::move(subject));
  }
  return join(texts, ", ");
}

Printer binding_printer() {
  return {{first(), plain("Role"), plain("Age"), wide("Users"), wide("Groups"),
           wide("ServiceAccounts")},
          [](const Json& o, Time now) -> JsonArray {
            return {name(o),
                    Json(fmt::format("{}/{}", string_or(at(o, "roleRef", "kind")),
                                     string_or(at(o, "roleRef", "name")))),
                    age(o, now),
                    Json(subjects(o, "User")),
                    Json(subjects(o, "Group")),
                    Json(subjects(o, "ServiceAccount"))};
          }};
}

// Kinds that differ only in where they keep their pod template.
Json images(const Json& o, const char* field) {
  return Json(containers(at(o, "spec", "template", "spec", "containers"), field));
}

std::map<std::string, Printer, std::less<>> workload_printers() {
  std::map<std::string, Printer, std::less<>> p;
  p["Pod"] = {{first(), plain("Ready"), plain("Status"), plain("Restarts"), plain("Age"),
               wide("IP"), wide("Node"), wide("Nominated Node"), wide("Readiness Gates")},
              pod_cells};
  p["Job"] = {{first(), plain("Status"), plain("Completions"), plain("Duration"), plain("Age"),
               wide("Containers"), wide("Images"), wide("Selector")},
              [](const Json& o, Time now) -> JsonArray {
                return {name(o),
                        Json(job_status(o)),
                        Json(job_completions(o)),
                        Json(job_duration(o, now)),
                        age(o, now),
                        images(o, "name"),
                        images(o, "image"),
                        Json(selector(at(o, "spec", "selector")))};
              }};
  p["CronJob"] = {{first(), plain("Schedule"), plain("Timezone"), plain("Suspend", "boolean"),
                   plain("Active", "integer"), plain("Last Schedule"), plain("Age"),
                   wide("Containers"), wide("Images"), wide("Selector")},
                  [](const Json& o, Time now) -> JsonArray {
                    const Json* pod =
                        at(o, "spec", "jobTemplate", "spec", "template", "spec", "containers");
                    const std::string_view last = string_or(at(o, "status", "lastScheduleTime"));
                    return {name(o),
                            text(at(o, "spec", "schedule")),
                            text(at(o, "spec", "timeZone"), "<none>"),
                            Json(bool_or(at(o, "spec", "suspend")) ? "True" : "False"),
                            Json(members(at(o, "status", "active"))),
                            Json(last.empty() ? "<none>" : since(last, now)),
                            age(o, now),
                            Json(containers(pod, "name")),
                            Json(containers(pod, "image")),
                            Json(selector(at(o, "spec", "jobTemplate", "spec", "selector")))};
                  }};
  p["Deployment"] = {{first(), plain("Ready"), plain("Up-to-date"), plain("Available"),
                      plain("Age"), wide("Containers"), wide("Images"), wide("Selector")},
                     [](const Json& o, Time now) -> JsonArray {
                       return {name(o),
                               Json(fmt::format("{}/{}", int_or(at(o, "status", "readyReplicas")),
                                                int_or(at(o, "spec", "replicas")))),
                               Json(int_or(at(o, "status", "updatedReplicas"))),
                               Json(int_or(at(o, "status", "availableReplicas"))),
                               age(o, now),
                               images(o, "name"),
                               images(o, "image"),
                               Json(selector(at(o, "spec", "selector")))};
                     }};
  p["ReplicaSet"] = {
      {first(), plain("Desired", "integer"), plain("Current", "integer"), plain("Ready", "integer"),
       plain("Age"), wide("Containers"), wide("Images"), wide("Selector")},
      [](const Json& o, Time now) -> JsonArray {
        return {name(o),
                Json(int_or(at(o, "spec", "replicas"))),
                Json(int_or(at(o, "status", "replicas"))),
                Json(int_or(at(o, "status", "readyReplicas"))),
                age(o, now),
                images(o, "name"),
                images(o, "image"),
                Json(selector(at(o, "spec", "selector")))};
      }};
  p["StatefulSet"] = {{first(), plain("Ready"), plain("Age"), wide("Containers"), wide("Images")},
                      [](const Json& o, Time now) -> JsonArray {
                        return {name(o),
                                Json(fmt::format("{}/{}", int_or(at(o, "status", "readyReplicas")),
                                                 int_or(at(o, "spec", "replicas")))),
                                age(o, now), images(o, "name"), images(o, "image")};
                      }};
  p["DaemonSet"] = {
      {first(), plain("Desired", "integer"), plain("Current", "integer"), plain("Ready", "integer"),
       plain("Up-to-date", "integer"), plain("Available", "integer"), plain("Node Selector"),
       plain("Age"), wide("Containers"), wide("Images"), wide("Selector")},
      [](const Json& o, Time now) -> JsonArray {
        return {name(o),
                Json(int_or(at(o, "status", "desiredNumberScheduled"))),
                Json(int_or(at(o, "status", "currentNumberScheduled"))),
                Json(int_or(at(o, "status", "numberReady"))),
                Json(int_or(at(o, "status", "updatedNumberScheduled"))),
                Json(int_or(at(o, "status", "numberAvailable"))),
                Json(labels_text(at(o, "spec", "template", "spec", "nodeSelector"))),
                age(o, now),
                images(o, "name"),
                images(o, "image"),
                Json(selector(at(o, "spec", "selector")))};
      }};
  return p;
}

void add_core_printers(std::map<std::string, Printer, std::less<>>& p) {
  p["Service"] = {{first(), plain("Type"), plain("Cluster-IP"), plain("External-IP"),
                   plain("Port(s)"), plain("Age"), wide("Selector")},
                  [](const Json& o, Time now) -> JsonArray {
                    return {name(o),
                            text(at(o, "spec", "type")),
                            text(at(o, "spec", "clusterIP"), "<none>"),
                            Json(service_external(o)),
                            Json(service_ports(o)),
                            age(o, now),
                            Json(labels_text(at(o, "spec", "selector")))};
                  }};
  p["Endpoints"] = {{first(), plain("Endpoints"), plain("Age")},
                    [](const Json& o, Time now) -> JsonArray {
                      return {name(o), Json(endpoints_text(o)), age(o, now)};
                    }};
  p["EndpointSlice"] = {
      {first(), plain("AddressType"), plain("Ports"), plain("Endpoints"), plain("Age")},
      [](const Json& o, Time now) -> JsonArray {
        return {name(o), text(find(o, "addressType")), Json(slice_ports(o)),
                Json(slice_addresses(o)), age(o, now)};
      }};
  p["Node"] = {{first(), plain("Status"), plain("Roles"), plain("Age"), plain("Version"),
                wide("Internal-IP"), wide("External-IP"), wide("OS-Image"), wide("Kernel-Version"),
                wide("Container-Runtime")},
               [](const Json& o, Time now) -> JsonArray {
                 const auto info = [&o](const char* key) {
                   return at(o, "status", "nodeInfo", key);
                 };
                 return {name(o),
                         Json(node_status(o)),
                         Json(node_roles(o)),
                         age(o, now),
                         text(info("kubeletVersion")),
                         node_address(o, "InternalIP"),
                         node_address(o, "ExternalIP"),
                         text(info("osImage"), "<unknown>"),
                         text(info("kernelVersion"), "<unknown>"),
                         text(info("containerRuntimeVersion"), "<unknown>")};
               }};
  p["Event"] = {{plain("Last Seen"),
                 plain("Type"),
                 plain("Reason"),
                 plain("Object"),
                 wide("Subobject"),
                 wide("Source"),
                 plain("Message"),
                 wide("First Seen"),
                 wide("Count"),
                 {.name = "Name", .format = "name", .priority = 1}},
                event_cells};
  p["Namespace"] = {{first(), plain("Status"), plain("Age")},
                    [](const Json& o, Time now) -> JsonArray {
                      return {name(o), text(at(o, "status", "phase")), age(o, now)};
                    }};
  p["Secret"] = {{first(), plain("Type"), plain("Data"), plain("Age")},
                 [](const Json& o, Time now) -> JsonArray {
                   return {name(o), text(find(o, "type")), Json(members(find(o, "data"))),
                           age(o, now)};
                 }};
  p["ServiceAccount"] = {{first(), plain("Secrets"), plain("Age")},
                         [](const Json& o, Time now) -> JsonArray {
                           return {name(o), Json(members(find(o, "secrets"))), age(o, now)};
                         }};
  p["ConfigMap"] = {
      {first(), plain("Data"), plain("Age")}, [](const Json& o, Time now) -> JsonArray {
        return {name(o), Json(members(find(o, "data")) + members(find(o, "binaryData"))),
                age(o, now)};
      }};
  p["PersistentVolumeClaim"] = {
      {first(), plain("Status"), plain("Volume"), plain("Capacity"), plain("Access Modes"),
       plain("StorageClass"), plain("VolumeAttributesClass"), plain("Age"), wide("VolumeMode")},
      claim_cells};
}

std::map<std::string, Printer, std::less<>> make_printers() {
  auto p = workload_printers();
  add_core_printers(p);
  p["Lease"] = {{first(), plain("Holder"), plain("Age")}, [](const Json& o, Time now) -> JsonArray {
                  return {name(o), text(at(o, "spec", "holderIdentity")), age(o, now)};
                }};
  p["PriorityClass"] = {{first(), plain("Value", "integer"), plain("Global-Default", "boolean"),
                         plain("Age"), plain("PreemptionPolicy")},
                        [](const Json& o, Time now) -> JsonArray {
                          return {name(o), Json(int_or(find(o, "value"))),
                                  Json(bool_or(find(o, "globalDefault"))), age(o, now),
                                  text(find(o, "preemptionPolicy"))};
                        }};
  p["RoleBinding"] = binding_printer();
  p["ClusterRoleBinding"] = binding_printer();
  const Printer created{{first(), plain("Created At")}, [](const Json& o, Time) -> JsonArray {
                          return {name(o), Json(meta_text(o, "creationTimestamp"))};
                        }};
  for (const char* kind : {"CustomResourceDefinition", "Role", "ClusterRole", "LimitRange"}) {
    p[kind] = created;
  }
  for (const char* kind : {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}) {
    p[kind] = {{first(), plain("Webhooks", "integer"), plain("Age")},
               [](const Json& o, Time now) -> JsonArray {
                 return {name(o), Json(members(find(o, "webhooks"))), age(o, now)};
               }};
  }
  return p;
}

const Printer& printer_of(const ResourceType& type) {
  static const auto kPrinters = make_printers();
  static const Printer kPlain{{first(), plain("Age")}, [](const Json& o, Time now) -> JsonArray {
                                return {name(o), age(o, now)};
                              }};
  const auto it = kPrinters.find(type.kind);
  return it == kPrinters.end() ? kPlain : it->second;
}

Json custom_cell(const PrinterColumn& column, const Json& object, Time now) {
  const std::vector<const Json*> found = find_by_path(object, column.path);
  if (found.empty() || found.front()->is_null()) return Json();
  const Json& value = *found.front();
  if (column.type == "date") {
    return value.is_string() ? Json(since(string_or(&value), now)) : Json("<invalid>");
  }
  if (column.type == "string") {
    if (value.is_string()) return value;
    std::vector<std::string> texts;
    for (const Json* one : found) {
      texts.push_back(one->is_string() ? std::string(string_or(one)) : to_text(*one));
    }
    return Json(join(texts, ","));
  }
  if (column.type == "integer" && value.is_number()) return Json(int_or(&value));
  if (column.type == "boolean" && !value.is_bool()) return Json();
  return value;
}

}  // namespace

std::string since(std::string_view time, Time now) {
  const auto then = parse_time(time);
  return then ? format_age(now - *then) : "<unknown>";
}

std::vector<Column> columns_of(const ResourceType& type) {
  if (!type.custom) return printer_of(type).columns;
  std::vector<Column> columns{first()};
  for (const PrinterColumn& column : type.custom->columns) {
    columns.push_back({.name = column.name,
                       .type = column.type,
                       .format = column.format,
                       .description = column.description.empty()
                                          ? "Custom resource definition column (in JSONPath "
                                            "format): " +
                                                column.path
                                          : column.description,
                       .priority = column.priority});
  }
  if (type.custom->columns.empty()) columns.push_back({.name = "Age", .type = "date"});
  return columns;
}

JsonArray cells_of(const ResourceType& type, const Json& object, Time now) {
  if (!type.custom) return printer_of(type).cells(object, now);
  JsonArray cells{name(object)};
  for (const PrinterColumn& column : type.custom->columns) {
    cells.push_back(custom_cell(column, object, now));
  }
  if (type.custom->columns.empty()) cells.push_back(age(object, now));
  return cells;
}

}  // namespace grapnel::local
