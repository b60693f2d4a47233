#include "kube/kubeconfig.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "document/json_view.h"

namespace grapnel::kube {
namespace {

// Reads the fields of one document and keeps the first thing that is wrong with it.
class Reader {
 public:
  Reader(std::string_view file, Positions positions)
      : file_(file), positions_(std::make_shared<const Positions>(std::move(positions))) {}

  Origin origin(std::string path) const {
    return {std::string(file_), std::move(path), positions_};
  }

  void refuse(std::string path, std::string_view why) {
    if (error_) return;
    error_ = Error{.reason = Reason::kDecode,
                   .message = fmt::format("{}: {}", origin(std::move(path)).text(), why)};
  }

  // The member, when it is there and of that type. Null counts as missing, as it does for kubectl.
  const Json* member(const Json& parent, std::string_view path, std::string_view key,
                     JsonType wanted) {
    const Json* value = find(parent, key);
    if (value == nullptr || value->is_null()) return nullptr;
    const JsonType type = JsonView(*value).type();
    if (type == wanted) return value;
    refuse(join_path(path, key),
           fmt::format("expected {}, found {}{}", to_string(wanted), to_string(type),
                       wanted == JsonType::kString && !value->is_structured()
                           ? "; put the value in quotes"
                           : ""));
    return nullptr;
  }
  std::string text(const Json& parent, std::string_view path, std::string_view key) {
    return std::string(string_or(member(parent, path, key, JsonType::kString)));
  }
  bool flag(const Json& parent, std::string_view path, std::string_view key) {
    return bool_or(member(parent, path, key, JsonType::kBool));
  }
  std::string required_text(const Json& parent, std::string_view path, std::string_view key,
                            std::string_view cure) {
    std::string value = text(parent, path, key);
    if (value.empty()) refuse(join_path(path, key), fmt::format("is missing; {}", cure));
    return value;
  }
  std::vector<std::string> texts(const Json& parent, std::string_view path, std::string_view key) {
    std::vector<std::string> values;
    each(parent, path, key, JsonType::kString, [&values](const Json& item, const std::string&) {
      values.emplace_back(string_or(&item));
    });
    return values;
  }
  // f(item, its path) for each item of a list of that type.
  template <class F>
  void each(const Json& parent, std::string_view path, std::string_view key, JsonType wanted, F f) {
    const Json* list = member(parent, path, key, JsonType::kArray);
    if (list == nullptr) return;
    size_t index = 0;
    for (const Json& item : list->get_array()) {
      const std::string here = fmt::format("{}[{}]", join_path(path, key), index++);
      if (JsonView(item).type() != wanted) {
        refuse(here, fmt::format("expected {}, found {}", to_string(wanted),
                                 to_string(JsonView(item).type())));
        return;
      }
      f(item, here);
    }
  }

  static std::string join_path(std::string_view path, std::string_view key) {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string_view file_;
  std::shared_ptr<const Positions> positions_;
  std::optional<Error> error_;
};

constexpr std::string_view kExecGroup = "client.authentication.k8s.io/";

Json exec_extension(Reader& reader, const Json& cluster, std::string_view path) {
  Json found;
  reader.each(cluster, path, "extensions", JsonType::kObject,
              [&found](const Json& extension, const std::string&) {
                if (string_or(find(extension, "name")) != "client.authentication.k8s.io/exec") {
                  return;
                }
                if (const Json* value = find(extension, "extension")) found = *value;
              });
  return found;
}

ClusterEntry read_cluster(Reader& reader, const Json& body, const std::string& path) {
  ClusterEntry entry;
  entry.server = reader.text(body, path, "server");
  entry.certificate_authority = reader.text(body, path, "certificate-authority");
  entry.certificate_authority_data = reader.text(body, path, "certificate-authority-data");
  entry.insecure_skip_tls_verify = reader.flag(body, path, "insecure-skip-tls-verify");
  entry.tls_server_name = reader.text(body, path, "tls-server-name");
  entry.proxy_url = reader.text(body, path, "proxy-url");
  entry.exec_config = exec_extension(reader, body, path);
  return entry;
}

ExecPlugin::Interactive read_interactive(Reader& reader, const Json& exec, const std::string& path,
                                         std::string_view api_version) {
  using enum ExecPlugin::Interactive;
  const std::string mode = reader.text(exec, path, "interactiveMode");
  if (mode == "Never") return kNever;
  if (mode == "Always") return kAlways;
  if (mode.empty() && api_version.ends_with("/v1")) {
    reader.refuse(path + ".interactiveMode",
                  "is missing, and this apiVersion asks for it; write Never, IfAvailable or "
                  "Always");
  }
  if (!mode.empty() && mode != "IfAvailable") {
    reader.refuse(path + ".interactiveMode",
                  fmt::format("'{}' is unknown; allowed are Never, IfAvailable and Always", mode));
  }
  return kIfAvailable;
}

ExecPlugin read_exec(Reader& reader, const Json& exec, const std::string& path) {
  ExecPlugin plugin;
  plugin.api_version = reader.required_text(
      exec, path, "apiVersion", "write client.authentication.k8s.io/v1 or the version it speaks");
  if (!plugin.api_version.empty() && plugin.api_version != fmt::format("{}v1", kExecGroup) &&
      plugin.api_version != fmt::format("{}v1beta1", kExecGroup)) {
    reader.refuse(path + ".apiVersion",
                  fmt::format("'{}' is not supported; allowed are {}v1 and {}v1beta1 (a newer "
                              "release of the plugin speaks them)",
                              plugin.api_version, kExecGroup, kExecGroup));
  }
  plugin.command =
      reader.required_text(exec, path, "command", "name the program that gives credentials");
  plugin.arguments = reader.texts(exec, path, "args");
  reader.each(exec, path, "env", JsonType::kObject,
              [&](const Json& variable, const std::string& here) {
                plugin.environment.emplace_back(
                    reader.required_text(variable, here, "name", "name the variable"),
                    reader.text(variable, here, "value"));
              });
  plugin.install_hint = reader.text(exec, path, "installHint");
  plugin.provide_cluster_info = reader.flag(exec, path, "provideClusterInfo");
  plugin.interactive = read_interactive(reader, exec, path, plugin.api_version);
  return plugin;
}

void read_impersonation(Reader& reader, const Json& body, const std::string& path,
                        UserEntry& entry) {
  entry.as = reader.text(body, path, "as");
  entry.as_uid = reader.text(body, path, "as-uid");
  entry.as_groups = reader.texts(body, path, "as-groups");
  const Json* extra = reader.member(body, path, "as-user-extra", JsonType::kObject);
  if (extra == nullptr) return;
  const std::string here = path + ".as-user-extra";
  for (const auto& [key, values] : extra->get_object()) {
    for (std::string& value : reader.texts(*extra, here, key)) {
      entry.as_extra.emplace_back(key, std::move(value));
    }
  }
}

UserEntry read_user(Reader& reader, const Json& body, const std::string& path) {
  UserEntry entry;
  entry.token = reader.text(body, path, "token");
  entry.token_file = reader.text(body, path, "tokenFile");
  entry.client_certificate = reader.text(body, path, "client-certificate");
  entry.client_certificate_data = reader.text(body, path, "client-certificate-data");
  entry.client_key = reader.text(body, path, "client-key");
  entry.client_key_data = reader.text(body, path, "client-key-data");
  entry.username = reader.text(body, path, "username");
  entry.password = reader.text(body, path, "password");
  read_impersonation(reader, body, path, entry);
  if (const Json* provider = reader.member(body, path, "auth-provider", JsonType::kObject)) {
    entry.auth_provider = reader.required_text(*provider, path + ".auth-provider", "name",
                                               "name the provider or remove it");
  }
  if (const Json* exec = reader.member(body, path, "exec", JsonType::kObject)) {
    entry.exec = read_exec(reader, *exec, path + ".exec");
  }
  return entry;
}

ContextEntry read_context(Reader& reader, const Json& body, const std::string& path) {
  ContextEntry entry;
  entry.cluster = reader.text(body, path, "cluster");
  entry.user = reader.text(body, path, "user");
  entry.ns = reader.text(body, path, "namespace");
  return entry;
}

// A list of {name, <kind>: {…}}.
template <class Entry>
std::vector<Entry> read_entries(Reader& reader, const Json& document, std::string_view list,
                                std::string_view kind,
                                Entry (*read)(Reader&, const Json&, const std::string&)) {
  std::vector<Entry> entries;
  reader.each(
      document, "", list, JsonType::kObject, [&](const Json& item, const std::string& path) {
        const std::string name =
            reader.required_text(item, path, "name", "contexts find the entry by it");
        const Json* body = reader.member(item, path, kind, JsonType::kObject);
        static const Json nothing = JsonObject();
        Entry entry =
            read(reader, body == nullptr ? nothing : *body, fmt::format("{}.{}", path, kind));
        entry.name = name;
        entry.origin = reader.origin(path);
        if (std::ranges::find(entries, name, &Entry::name) != entries.end()) {
          reader.refuse(path + ".name", fmt::format("'{}' is there twice; rename one", name));
        }
        entries.push_back(std::move(entry));
      });
  return entries;
}

void check_type(Reader& reader, const Json& document) {
  const std::string kind = reader.text(document, "", "kind");
  const std::string version = reader.text(document, "", "apiVersion");
  if (!kind.empty() && kind != "Config") {
    reader.refuse("kind", fmt::format("'{}' is not a kubeconfig, which has kind: Config", kind));
  }
  if (!version.empty() && version != "v1") {
    reader.refuse("apiVersion", fmt::format("'{}' is not supported; allowed is v1", version));
  }
}

}  // namespace

std::string Origin::text(std::string_view field) const {
  const std::string whole = field.empty() ? path : Reader::join_path(path, field);
  const Position position = positions ? positions->find(whole) : Position{};
  std::string where =
      position.line > 0 ? fmt::format("{}:{}:{}", file, position.line, position.column) : file;
  return whole.empty() ? where : fmt::format("{}: {}", where, whole);
}

std::string Origin::resolve(std::string_view name) const {
  return (std::filesystem::path(file).parent_path() / name).lexically_normal().string();
}

Result<Kubeconfig> parse_kubeconfig(std::string_view text, std::string_view file) {
  auto documents = parse_yaml(text);
  if (!documents) return fail_in(file, std::move(documents.error()));
  Kubeconfig config{.files = {std::string(file)}};
  if (documents->empty()) return config;  // kubectl takes an empty file as one that says nothing
  if (documents->size() > 1) {
    return fail(Reason::kDecode, "{}: {} documents where one is expected; give each its own file",
                file, documents->size());
  }
  YamlDocument& document = documents->front();
  if (!document.value.is_object()) {
    return fail(Reason::kDecode, "{}: not a kubeconfig: expected an object, found {}", file,
                to_string(JsonView(document.value).type()));
  }
  Reader reader(file, std::move(document.positions));
  check_type(reader, document.value);
  config.clusters = read_entries(reader, document.value, "clusters", "cluster", &read_cluster);
  config.users = read_entries(reader, document.value, "users", "user", &read_user);
  config.contexts = read_entries(reader, document.value, "contexts", "context", &read_context);
  config.current_context = reader.text(document.value, "", "current-context");
  if (reader.error()) return fail(*reader.error());
  return config;
}

}  // namespace grapnel::kube
