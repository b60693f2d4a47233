#include "kube/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/files.h"
#include "base/strings.h"

namespace grapnel::kube {
namespace {

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
}

Result<> check_url(const std::string& where, std::string_view url, bool socks) {
  const auto refuse = [&](std::string_view why) {
    return fail(Reason::kUsage, "{}: '{}' {}", where, url, why);
  };
  const size_t scheme_end = url.find("://");
  const std::string scheme = to_lower(url.substr(0, scheme_end));
  const bool known = scheme == "https" || scheme == "http" ||
                     (socks && (scheme == "socks5" || scheme == "socks5h"));
  if (scheme_end == url.npos || !known) {
    return refuse(socks ? "is not a URL of http, https or socks5"
                        : "is not a URL of https or http");
  }
  if (has_control_characters(url) || url.find(' ') != url.npos) return refuse("holds a blank");
  if (url.find_first_of("?#") != url.npos) return refuse("may not have a query or fragment");
  std::string_view host = url.substr(scheme_end + 3);
  host = host.substr(0, host.find('/'));
  if (const size_t at = host.rfind('@'); at != host.npos) host.remove_prefix(at + 1);
  std::string_view port;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == host.npos) return refuse("has a '[' without its ']'");
    port = host.substr(end + 1);
    host = host.substr(1, end - 1);
  } else {
    port = host.substr(std::min(host.find(':'), host.size()));
    host = host.substr(0, host.find(':'));
  }
  if (host.empty()) return refuse("has no host");
  if (port.empty()) return {};
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data() + 1, port.data() + port.size(), number);
  if (port[0] != ':' || error != std::errc() || end != port.data() + port.size() || number == 0) {
    return refuse("has a port that is not in 1 to 65535");
  }
  return {};
}

// From base64 in the config itself, or from a file beside it; the former wins, as for kubectl.
Result<Pem> read_pem(const Origin& origin, std::string_view section, std::string_view field,
                     const std::string& file, const std::string& data, std::string_view marker) {
  Pem pem;
  const std::string where = origin.text(fmt::format("{}.{}", section, field));
  if (!data.empty()) {
    auto text = base64_decode(trim(data));
    if (!text) {
      return fail(Reason::kUsage, "{}-data: not base64; `base64 -w0 FILE` makes it of a PEM file",
                  where);
    }
    pem.text = std::move(*text);
  } else if (!file.empty()) {
    pem.file = origin.resolve(file);
    auto text = read_file(pem.file);
    if (!text) {
      return fail(Reason::kUsage, "{}: cannot read '{}': {}", where, pem.file,
                  text.error().message);
    }
    pem.text = std::move(*text);
  } else {
    return pem;
  }
  if (pem.text.find(marker) == std::string::npos) {
    return fail(Reason::kUsage, "{}{}: holds no PEM block '{}…'", where,
                data.empty() ? "" : "-data", marker);
  }
  return pem;
}

Result<> read_cluster(Access& access, const ClusterEntry& cluster) {
  const Origin& origin = cluster.origin;
  if (cluster.server.empty()) {
    return fail(Reason::kUsage, "{}: is missing; write the URL of the API server",
                origin.text("cluster.server"));
  }
  auto authority =
      read_pem(origin, "cluster", "certificate-authority", cluster.certificate_authority,
               cluster.certificate_authority_data, "-----BEGIN ");
  if (!authority) return fail(std::move(authority.error()));
  if (cluster.insecure_skip_tls_verify && !authority->text.empty()) {
    return fail(Reason::kUsage,
                "{}: cannot be set together with certificate-authority; remove one of them",
                origin.text("cluster.insecure-skip-tls-verify"));
  }
  access.authority = std::move(*authority);
  access.insecure_skip_verify = cluster.insecure_skip_tls_verify;
  access.server_name = cluster.tls_server_name;
  access.server = cluster.server;
  // As kubectl reads "host:port": with TLS when the entry says anything of it.
  if (access.server.find("://") == std::string::npos) {
    const bool tls = !access.authority.text.empty() || access.insecure_skip_verify;
    access.server.insert(0, tls ? "https://" : "http://");
  }
  if (auto ok = check_url(origin.text("cluster.server"), access.server, false); !ok) return ok;
  const size_t scheme = access.server.find("://");
  access.server.replace(0, scheme, to_lower(access.server.substr(0, scheme)));
  if (!cluster.proxy_url.empty()) {
    if (auto ok = check_url(origin.text("cluster.proxy-url"), cluster.proxy_url, true); !ok) {
      return ok;
    }
    access.proxy_url = cluster.proxy_url;
  }
  return {};
}

Json describe_cluster(const Access& access, const ClusterEntry& cluster) {
  JsonObject info{{"server", access.server}};
  if (!access.authority.text.empty()) {
    info["certificate-authority-data"] = base64_encode(access.authority.text);
  }
  if (!access.server_name.empty()) info["tls-server-name"] = access.server_name;
  if (access.insecure_skip_verify) info["insecure-skip-tls-verify"] = true;
  if (!access.proxy_url.empty()) info["proxy-url"] = access.proxy_url;
  if (!cluster.exec_config.is_null()) info["config"] = cluster.exec_config;
  return info;
}

Result<> read_certificate(Access& access, const UserEntry& user) {
  auto certificate = read_pem(user.origin, "user", "client-certificate", user.client_certificate,
                              user.client_certificate_data, "-----BEGIN CERTIFICATE-----");
  if (!certificate) return fail(std::move(certificate.error()));
  auto key = read_pem(user.origin, "user", "client-key", user.client_key, user.client_key_data,
                      "PRIVATE KEY-----");
  if (!key) return fail(std::move(key.error()));
  if (certificate->text.empty() != key->text.empty()) {
    return fail(Reason::kUsage, "{}: is missing; a certificate and its key go together",
                user.origin.text(certificate->text.empty() ? "user.client-certificate"
                                                           : "user.client-key"));
  }
  access.certificate = std::move(*certificate);
  access.key = std::move(*key);
  return {};
}

void read_impersonation(Access& access, const UserEntry& user) {
  if (!user.as.empty()) access.headers.add("Impersonate-User", user.as);
  if (!user.as_uid.empty()) access.headers.add("Impersonate-Uid", user.as_uid);
  for (const std::string& group : user.as_groups) access.headers.add("Impersonate-Group", group);
  for (const auto& [key, value] : user.as_extra) {
    access.headers.add("Impersonate-Extra-" + percent_encode(to_lower(key)), value);
  }
}

Result<> check_headers(const Access& access, const UserEntry& user) {
  for (const auto& [name, value] : access.headers) {
    if (!has_control_characters(value)) continue;
    return fail(Reason::kUsage,
                "{}: what becomes the header {} holds a line break or another "
                "control character; remove it",
                user.origin.text("user"), name);
  }
  return {};
}

Result<> read_user(Access& access, const UserEntry& user) {
  const Origin& origin = user.origin;
  access.user_at = origin.text();
  if (!user.auth_provider.empty()) {
    return fail(Reason::kUsage,
                "{}: '{}': auth providers are not supported; use the exec plugin that replaces it",
                origin.text("user.auth-provider"), user.auth_provider);
  }
  const bool has_token = !user.token.empty() || !user.token_file.empty();
  if (has_token && !user.username.empty()) {
    return fail(Reason::kUsage, "{}: both a token and a username are set; remove one of them",
                origin.text("user"));
  }
  if (user.exec && (has_token || !user.username.empty())) {
    return fail(Reason::kUsage, "{}: both exec and {} are set; remove one of them",
                origin.text("user"), has_token ? "a token" : "a username");
  }
  if (user.as.empty() && (!user.as_uid.empty() || !user.as_groups.empty())) {
    return fail(Reason::kUsage, "{}: is missing; as-uid and as-groups need the user to act as",
                origin.text("user.as"));
  }
  if (auto ok = read_certificate(access, user); !ok) return ok;
  if (!user.token_file.empty()) {
    access.token_file = origin.resolve(user.token_file);
  } else if (!user.token.empty()) {
    access.headers.add("Authorization", "Bearer " + user.token);
  } else if (!user.username.empty()) {
    access.headers.add("Authorization",
                       "Basic " + base64_encode(user.username + ":" + user.password));
  }
  read_impersonation(access, user);
  if (auto ok = check_headers(access, user); !ok) return ok;
  access.exec = user.exec;
  if (access.exec && access.exec->command.find('/') != std::string::npos) {
    access.exec->command = origin.resolve(access.exec->command);
  }
  return {};
}

std::vector<std::string> default_files(const Environment& environment) {
  std::vector<std::string> files;
  if (const std::string list = environment("KUBECONFIG"); !list.empty()) {
    for (const std::string_view file : split(list, ':')) {
      const bool new_one = std::ranges::find(files, file) == files.end();
      if (!file.empty() && new_one) files.emplace_back(file);
    }
  } else if (const std::string home = environment("HOME"); !home.empty()) {
    files.push_back(home + "/.kube/config");
  }
  return files;
}

// What a list of files says together. Those that do not exist are passed over, as kubectl does.
Result<Kubeconfig> load(const std::vector<std::string>& files) {
  std::vector<Kubeconfig> configs;
  for (const std::string& file : files) {
    const auto text = read_file(file);
    if (!text && text.error().is(Reason::kNotFound)) continue;
    if (!text) return fail(Reason::kUsage, "cannot read {}: {}", file, text.error().message);
    auto config = parse_kubeconfig(*text, file);
    if (!config) return config;
    configs.push_back(std::move(*config));
  }
  return merge_kubeconfigs(std::move(configs));
}

Result<Access> access_in_cluster(const AccessOptions& options, const std::string& host) {
  const std::string port = options.environment("KUBERNETES_SERVICE_PORT");
  const std::string& folder = options.service_account_folder;
  Access access;
  access.server = host.find(':') == std::string::npos ? fmt::format("https://{}:{}", host, port)
                                                      : fmt::format("https://[{}]:{}", host, port);
  if (auto ok = check_url("KUBERNETES_SERVICE_HOST and _PORT", access.server, false); !ok) {
    return fail(std::move(ok.error()));
  }
  access.token_file = folder + "/token";
  access.authority.file = folder + "/ca.crt";
  for (const std::string& file : {access.token_file, access.authority.file}) {
    auto text = read_file(file);
    if (!text) {
      return fail(Reason::kUsage,
                  "{}: {}; give the pod a service account (automountServiceAccountToken: true) or "
                  "a kubeconfig",
                  file, text.error().message);
    }
    if (file == access.authority.file) access.authority.text = std::move(*text);
  }
  if (const auto ns = read_file(folder + "/namespace"); ns && !trim(*ns).empty()) {
    access.ns = trim(*ns);
  }
  return access;
}

}  // namespace

std::string environment_of_process(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

Result<Access> access_of(const ChosenContext& chosen) {
  Access access;
  access.context = chosen.context->name;
  if (!chosen.context->ns.empty()) access.ns = chosen.context->ns;
  if (auto ok = read_cluster(access, *chosen.cluster); !ok) return fail(std::move(ok.error()));
  // Over plain HTTP nobody is told who we are: it would be in the clear.
  if (chosen.user != nullptr && access.server.starts_with("https://")) {
    if (auto ok = read_user(access, *chosen.user); !ok) return fail(std::move(ok.error()));
    access.exec_cluster = describe_cluster(access, *chosen.cluster);
  }
  return access;
}

Result<Kubeconfig> find_kubeconfig(const AccessOptions& options) {
  if (options.kubeconfig.empty()) return load(default_files(options.environment));
  if (const auto text = read_file(options.kubeconfig); !text) {
    return fail(Reason::kUsage, "cannot read {}: {}", options.kubeconfig, text.error().message);
  }
  return load({options.kubeconfig});
}

Result<Access> find_access(const AccessOptions& options) {
  auto config = find_kubeconfig(options);
  if (!config) return fail(std::move(config.error()));
  const std::string host = options.environment("KUBERNETES_SERVICE_HOST");
  const bool says_nothing = config->contexts.empty() && config->current_context.empty();
  if (options.kubeconfig.empty() && options.context.empty() && says_nothing && !host.empty()) {
    return access_in_cluster(options, host);
  }
  if (config->files.empty()) {
    const auto files = default_files(options.environment);
    return fail(Reason::kUsage, "no kubeconfig: {}; name one with --kubeconfig or KUBECONFIG",
                files.empty() ? "neither KUBECONFIG nor HOME is set"
                              : fmt::format("{} {} not exist", join(files, ", "),
                                            files.size() == 1 ? "does" : "do"));
  }
  const auto chosen = choose_context(*config, options.context);
  if (!chosen) return fail(chosen.error());
  return access_of(*chosen);
}

}  // namespace grapnel::kube
