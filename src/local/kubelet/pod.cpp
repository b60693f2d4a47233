#include "local/kubelet/pod.h"

namespace grapnel::local::kubelet {
namespace {

const Json& part(const Json& object, std::string_view name) {
  static const Json nothing;
  const Json* found = find(object, name);
  return found == nullptr ? nothing : *found;
}

void append(std::vector<Container>& out, const Pod& pod, std::string_view list, bool is_init) {
  for (const Json& container : elements(find(pod.spec(), list))) {
    if (find(container, "name") != nullptr) {
      out.push_back({.spec = &container, .is_init = is_init});
    }
  }
}

}  // namespace

const Json& Pod::spec() const {
  return part(*object, "spec");
}

const Json& Pod::status() const {
  return part(*object, "status");
}

std::string_view Pod::phase() const {
  return string_or(find(status(), "phase"));
}

bool Pod::is_finished() const {
  return phase() == "Succeeded" || phase() == "Failed";
}

RestartPolicy Pod::restart_policy() const {
  const auto text = string_or(find(spec(), "restartPolicy"));
  if (text == "Never") return RestartPolicy::kNever;
  return text == "OnFailure" ? RestartPolicy::kOnFailure : RestartPolicy::kAlways;
}

std::string Pod::hostname() const {
  const auto given = string_or(find(spec(), "hostname"));
  if (!given.empty()) return std::string(given);
  // A host name has at most 63 characters and does not end with a dash or a dot.
  std::string name = meta.name().substr(0, 63);
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  return name;
}

bool Pod::operator==(const Pod& other) const {
  return meta == other.meta && (object == other.object || equal(*object, *other.object));
}

Result<Pod> decode_pod(JsonView object) {
  // Labels and annotations are read from the object.
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(std::move(meta.error()));
  Json whole = object.to_json();
  if (JsonObject* fields = whole.if_object()) {
    JsonObject& metadata = ensure_object(*fields, "metadata");
    metadata.erase("managedFields");
    metadata.erase("resourceVersion");
  }
  return Pod{.meta = std::move(*meta), .object = std::make_shared<const Json>(std::move(whole))};
}

std::vector<Container> init_containers(const Pod& pod) {
  std::vector<Container> out;
  append(out, pod, "initContainers", true);
  return out;
}

std::vector<Container> main_containers(const Pod& pod) {
  std::vector<Container> out;
  append(out, pod, "containers", false);
  return out;
}

std::vector<Container> all_containers(const Pod& pod) {
  auto out = init_containers(pod);
  append(out, pod, "containers", false);
  return out;
}

}  // namespace grapnel::local::kubelet
