#include "local/kubelet/environment.h"

#include <algorithm>
#include <array>

#include "base/quantity.h"
#include "base/strings.h"

namespace grapnel::local::kubelet {
namespace {

void set(Variables& variables, std::string_view name, std::string value) {
  const auto found =
      std::ranges::find_if(variables, [&](const auto& v) { return v.first == name; });
  if (found != variables.end()) {
    found->second = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

std::optional<std::string> get(const Variables& variables, std::string_view name) {
  const auto found =
      std::ranges::find_if(variables, [&](const auto& v) { return v.first == name; });
  if (found == variables.end()) return std::nullopt;
  return found->second;
}

struct SourceKind {
  std::string_view reference;  // in valueFrom
  std::string_view from;       // in envFrom
  std::string_view words;
  std::string_view kind;
  const Json* (Sources::*get)(std::string_view) const;
};
constexpr std::array<SourceKind, 2> kSourceKinds{{
    {"configMapKeyRef", "configMapRef", "configmap", "ConfigMap", &Sources::config_map},
    {"secretKeyRef", "secretRef", "secret", "Secret", &Sources::secret},
}};

// None: optional, and missing.
Result<std::optional<std::string>> key_of_source(const EnvironmentInput& in, const SourceKind& kind,
                                                 const Json& reference) {
  const auto name = string_or(find(reference, "name"));
  const auto key = string_or(find(reference, "key"));
  const bool optional = bool_or(find(reference, "optional"));
  const Json* source = (in.sources->*kind.get)(name);
  if (source == nullptr) {
    if (optional) return std::nullopt;
    return fail(Reason::kNotFound, "{} \"{}\" not found", kind.words, name);
  }
  auto contents = contents_of(*source);
  const auto found = contents.find(key);
  if (found != contents.end()) return std::optional(std::move(found->second));
  if (optional) return std::nullopt;
  return fail(Reason::kNotFound, "couldn't find key {} in {} {}/{}", key, kind.kind,
              in.pod->meta.ns(), name);
}

Container container_named(const EnvironmentInput& in, std::string_view name) {
  for (const Container& container : all_containers(*in.pod)) {
    if (container.name() == name) return container;
  }
  return in.container;
}

Result<std::optional<std::string>> value_from(const EnvironmentInput& in, const Json& from) {
  for (const SourceKind& kind : kSourceKinds) {
    if (const Json* reference = find(from, kind.reference)) {
      return key_of_source(in, kind, *reference);
    }
  }
  if (const Json* field = find(from, "fieldRef")) {
    const auto path = string_or(find(*field, "fieldPath"));
    auto value = field_of_pod(*in.pod, path, *in.node, in.pod_address);
    if (!value) return fail(Reason::kInvalid, "unsupported fieldPath: {}", path);
    return value;
  }
  if (const Json* field = find(from, "resourceFieldRef")) {
    const auto resource = string_or(find(*field, "resource"));
    const auto name = string_or(find(*field, "containerName"));
    auto value = resource_of_container(name.empty() ? in.container : container_named(in, name),
                                       resource, string_or(find(*field, "divisor"), "1"), *in.node);
    if (!value) return fail(Reason::kInvalid, "unsupported container resource: {}", resource);
    return value;
  }
  return fail(Reason::kInvalid, "a source of this kind is not known: {}", to_text(from));
}

Result<> add_env_from(const EnvironmentInput& in, Variables& out) {
  for (const Json& from : elements(find(*in.container.spec, "envFrom"))) {
    for (const SourceKind& kind : kSourceKinds) {
      const Json* reference = find(from, kind.from);
      if (reference == nullptr) continue;
      const auto name = string_or(find(*reference, "name"));
      const Json* source = (in.sources->*kind.get)(name);
      if (source == nullptr) {
        if (bool_or(find(*reference, "optional"))) continue;
        return fail(Reason::kNotFound, "{} \"{}\" not found", kind.words, name);
      }
      const auto prefix = string_or(find(from, "prefix"));
      for (auto& [key, value] : contents_of(*source)) {
        // A name with '=' in it cannot be set; Kubernetes ignores it, too.
        if (key.find('=') == std::string::npos) set(out, std::string(prefix) + key, value);
      }
    }
  }
  return {};
}

std::string map_as_lines(const Json* map) {
  std::vector<std::string> lines;
  if (map != nullptr && map->is_object()) {
    for (const auto& [key, value] : map->get_object()) {
      lines.push_back(fmt::format("{}={}", std::string_view(key), to_text(value)));
    }
  }
  std::ranges::sort(lines);
  return join(lines, "\n");
}

// metadata.labels['key'] → key.
std::optional<std::string_view> subscript(std::string_view path, std::string_view field) {
  if (!path.starts_with(field)) return std::nullopt;
  path.remove_prefix(field.size());
  if (!path.starts_with("['") || !path.ends_with("']") || path.size() < 4) return std::nullopt;
  return path.substr(2, path.size() - 4);
}

}  // namespace

std::string expand(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name)>& value_of) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (text[i] != '$' || (next != '$' && next != '(')) {
      out += text[i++];
      continue;
    }
    if (next == '$') {
      out += '$';
      i += 2;
      continue;
    }
    const size_t end = text.find(')', i);
    if (end == std::string_view::npos) {
      out += "$(";
      i += 2;
      continue;
    }
    const auto whole = text.substr(i, end + 1 - i);
    out += value_of(whole.substr(2, whole.size() - 3)).value_or(std::string(whole));
    i = end + 1;
  }
  return out;
}

std::optional<std::string> ContainerEnvironment::get_known(std::string_view name) const {
  return get(known, name);
}

Result<ContainerEnvironment> environment_of(const EnvironmentInput& in) {
  Variables out;
  for (const std::string& variable : in.node->environment) {
    const size_t sign = variable.find('=');
    if (sign != std::string::npos) set(out, variable.substr(0, sign), variable.substr(sign + 1));
  }
  set(out, "HOSTNAME", in.pod->hostname());
  if (bool_or(find(*in.container.spec, "tty"))) set(out, "TERM", "xterm");
  for (const auto& [name, value] : in.services) set(out, name, value);

  // $(VAR) sees what the spec and the services set, not what the image does.
  Variables known = in.services;
  if (auto added = add_env_from(in, known); !added) return fail(added.error());
  for (const Json& variable : elements(find(*in.container.spec, "env"))) {
    const auto name = string_or(find(variable, "name"));
    if (const Json* from = find(variable, "valueFrom")) {
      auto value = value_from(in, *from);
      if (!value) return fail(value.error());
      if (*value) set(known, name, std::move(**value));
      continue;
    }
    set(known, name, expand(string_or(find(variable, "value")), [&](std::string_view n) {
          return get(known, n);
        }));
  }
  for (const auto& [name, value] : known) set(out, name, value);
  return ContainerEnvironment{.all = std::move(out), .known = std::move(known)};
}

std::vector<std::string> inherited_environment(const std::vector<std::string>& environment) {
  constexpr std::array<std::string_view, 26> kNames{"PATH",
                                                    "HOME",
                                                    "LANG",
                                                    "LANGUAGE",
                                                    "TZ",
                                                    "USER",
                                                    "LOGNAME",
                                                    "SHELL",
                                                    "VIRTUAL_ENV",
                                                    "CONDA_PREFIX",
                                                    "CONDA_DEFAULT_ENV",
                                                    "PYTHONPATH",
                                                    "PYTHONHOME",
                                                    "LD_LIBRARY_PATH",
                                                    "SSL_CERT_FILE",
                                                    "SSL_CERT_DIR",
                                                    "REQUESTS_CA_BUNDLE",
                                                    "CURL_CA_BUNDLE",
                                                    "http_proxy",
                                                    "https_proxy",
                                                    "no_proxy",
                                                    "HTTP_PROXY",
                                                    "HTTPS_PROXY",
                                                    "NO_PROXY",
                                                    "CUDA_HOME",
                                                    "JAVA_HOME"};
  std::vector<std::string> out;
  for (const std::string& variable : environment) {
    const auto name = std::string_view(variable).substr(0, variable.find('='));
    const bool is_family =
        name.starts_with("LC_") || name.starts_with("PYENV") || name.starts_with("NIX_");
    if (is_family || std::ranges::find(kNames, name) != kNames.end()) out.push_back(variable);
  }
  const bool has_path =
      std::ranges::any_of(out, [](const std::string& v) { return v.starts_with("PATH="); });
  if (!has_path) {
    out.emplace_back("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  }
  return out;
}

std::optional<std::string> field_of_pod(const Pod& pod, std::string_view path,
                                        const NodeFacts& node, std::string_view pod_address) {
  const Json& object = *pod.object;
  if (path == "metadata.name") return pod.meta.name();
  if (path == "metadata.namespace") return std::string(pod.meta.ns());
  if (path == "metadata.uid") return pod.uid();
  if (path == "metadata.labels") return map_as_lines(at(object, "metadata", "labels"));
  if (path == "metadata.annotations") return map_as_lines(at(object, "metadata", "annotations"));
  if (const auto key = subscript(path, "metadata.labels")) {
    return std::string(string_or(at(object, "metadata", "labels", *key)));
  }
  if (const auto key = subscript(path, "metadata.annotations")) {
    return std::string(string_or(at(object, "metadata", "annotations", *key)));
  }
  if (path == "spec.nodeName") return node.name;
  if (path == "spec.serviceAccountName") {
    return std::string(string_or(find(pod.spec(), "serviceAccountName"), "default"));
  }
  if (path == "status.podIP" || path == "status.podIPs") return std::string(pod_address);
  if (path == "status.hostIP" || path == "status.hostIPs") return node.address;
  return std::nullopt;
}

std::optional<std::string> resource_of_container(const Container& container,
                                                 std::string_view resource,
                                                 std::string_view divisor, const NodeFacts& node) {
  const size_t dot = resource.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto list = resource.substr(0, dot);
  const auto name = resource.substr(dot + 1);
  if (list != "limits" && list != "requests") return std::nullopt;
  auto amount = Quantity::parse(string_or(at(*container.spec, "resources", list, name), "0"));
  if (!amount) return std::nullopt;
  if (list == "limits" && amount->is_zero()) {
    // No limit: as much as the machine has.
    if (name == "cpu") amount = Quantity::from_milli(node.cpu_millis);
    if (name == "memory") amount = Quantity::from_units(node.memory_bytes);
  }
  const auto unit = Quantity::parse(divisor);
  if (!unit) return std::nullopt;
  // CPUs in thousandths, all else in whole units; the quotient is rounded up.
  const bool is_cpu = name == "cpu";
  const int64_t value = is_cpu ? amount->milli() : amount->units();
  int64_t by = is_cpu ? unit->milli() : unit->units();
  if (by <= 0) by = is_cpu ? 1000 : 1;
  return std::to_string(value / by + (value % by > 0 ? 1 : 0));
}

}  // namespace grapnel::local::kubelet
