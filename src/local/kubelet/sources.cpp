#include "local/kubelet/sources.h"

#include "base/strings.h"

namespace grapnel::local::kubelet {
namespace {

void add(std::set<std::string, std::less<>>& names, const Json* name) {
  const auto text = string_or(name);
  if (!text.empty()) names.emplace(text);
}

void add_container(SourceNames& out, const Json& container) {
  for (const Json& variable : elements(find(container, "env"))) {
    add(out.config_maps, at(variable, "valueFrom", "configMapKeyRef", "name"));
    add(out.secrets, at(variable, "valueFrom", "secretKeyRef", "name"));
  }
  for (const Json& from : elements(find(container, "envFrom"))) {
    add(out.config_maps, at(from, "configMapRef", "name"));
    add(out.secrets, at(from, "secretRef", "name"));
  }
}

void add_volume(SourceNames& out, const Json& volume) {
  add(out.config_maps, at(volume, "configMap", "name"));
  add(out.secrets, at(volume, "secret", "secretName"));
  add(out.claims, at(volume, "persistentVolumeClaim", "claimName"));
  for (const Json& source : elements(at(volume, "projected", "sources"))) {
    add(out.config_maps, at(source, "configMap", "name"));
    add(out.secrets, at(source, "secret", "name"));
    if (const Json* token = find(source, "serviceAccountToken")) out.tokens.push_back(*token);
  }
}

const Json* in(const std::map<std::string, Json, std::less<>>& objects, std::string_view name) {
  const auto found = objects.find(name);
  return found == objects.end() ? nullptr : &found->second;
}

Task<Result<std::map<std::string, Json, std::less<>>>> fetch(
    kube::Client& client, kube::Kind kind, std::string ns,
    std::set<std::string, std::less<>> names) {
  std::map<std::string, Json, std::less<>> out;
  for (const std::string& name : names) {
    auto got = co_await client.get(kind, {.ns = ns, .name = name, .subresource = ""});
    if (got) {
      out.emplace(name, std::move(*got));
    } else if (!got.error().is(Reason::kNotFound)) {
      co_return fail_in(fmt::format("reading {} {}/{}", kind.kind, ns, name), got.error());
    }
  }
  co_return out;
}

Task<Result<std::string>> request_token(kube::Client& client, Pod pod, std::string account,
                                        Json request) {
  JsonObject spec{
      {"expirationSeconds", int_or(find(request, "expirationSeconds"), 3600)},
      {"boundObjectRef",
       JsonObject{
           {"kind", "Pod"}, {"apiVersion", "v1"}, {"name", pod.meta.name()}, {"uid", pod.uid()}}}};
  const auto audience = string_or(find(request, "audience"));
  if (!audience.empty()) spec["audiences"] = JsonArray{audience};
  http::Request ask{.method = "POST",
                    .target = fmt::format("/api/v1/namespaces/{}/serviceaccounts/{}/token",
                                          pod.meta.ns(), account),
                    .headers = {{"Content-Type", "application/json"}},
                    .body = to_text(JsonObject{{"apiVersion", "authentication.k8s.io/v1"},
                                               {"kind", "TokenRequest"},
                                               {"spec", std::move(spec)}})};
  auto answer = co_await client.raw(std::move(ask));
  if (!answer) co_return fail(answer.error());
  if (answer->status >= 300) co_return fail(kube::error_of_answer(*answer, "POST token"));
  auto body = parse_json(answer->body);
  if (!body) co_return fail(body.error());
  co_return std::string(string_or(at(*body, "status", "token")));
}

}  // namespace

SourceNames sources_of(const Pod& pod) {
  SourceNames out;
  for (const Container& container : all_containers(pod)) add_container(out, *container.spec);
  for (const Json& volume : elements(find(pod.spec(), "volumes"))) add_volume(out, volume);
  out.service_account = string_or(find(pod.spec(), "serviceAccountName"), "default");
  return out;
}

const Json* Sources::config_map(std::string_view name) const {
  return in(config_maps, name);
}

const Json* Sources::secret(std::string_view name) const {
  return in(secrets, name);
}

std::map<std::string, std::string, std::less<>> contents_of(const Json& source) {
  std::map<std::string, std::string, std::less<>> out;
  const bool is_secret = string_or(find(source, "kind")) == "Secret";
  const auto take = [&](const char* field, bool encoded) {
    const Json* data = find(source, field);
    if (data == nullptr || !data->is_object()) return;
    for (const auto& [key, value] : data->get_object()) {
      const auto text = string_or(&value);
      out[key] = encoded ? base64_decode(text).value_or("") : std::string(text);
    }
  };
  take("data", is_secret);
  take("binaryData", true);
  return out;
}

std::string token_key(const Json& request) {
  return fmt::format("{} {}", string_or(find(request, "audience")),
                     int_or(find(request, "expirationSeconds"), 3600));
}

bool wants_api_access(const Pod& pod) {
  return bool_or(find(pod.spec(), "automountServiceAccountToken"), true);
}

Json api_token_request() {
  return JsonObject{{"path", "token"}, {"expirationSeconds", 3607}};
}

Task<Result<Sources>> fetch_sources(kube::Client& client, Pod pod, bool with_api_token) {
  SourceNames names = sources_of(pod);
  if (with_api_token && wants_api_access(pod)) names.tokens.push_back(api_token_request());
  const std::string ns(pod.meta.ns());
  Sources out;
  auto maps = co_await fetch(client, kube::kinds::kConfigMap, ns, names.config_maps);
  if (!maps) co_return fail(maps.error());
  out.config_maps = std::move(*maps);
  auto secrets = co_await fetch(client, kube::kinds::kSecret, ns, names.secrets);
  if (!secrets) co_return fail(secrets.error());
  out.secrets = std::move(*secrets);
  auto claims = co_await fetch(client, kube::kinds::kPersistentVolumeClaim, ns, names.claims);
  if (!claims) co_return fail(claims.error());
  for (const auto& [name, claim] : *claims) {
    const std::string bound(string_or(at(claim, "spec", "volumeName")));
    if (bound.empty()) continue;
    auto volume = co_await client.get(kube::kinds::kPersistentVolume,
                                      {.ns = "", .name = bound, .subresource = ""});
    if (volume) {
      out.volumes.emplace(name, std::move(*volume));
    } else if (!volume.error().is(Reason::kNotFound)) {
      co_return fail_in(fmt::format("reading the volume of claim {}/{}", ns, name), volume.error());
    }
  }
  for (const Json& request : names.tokens) {
    auto token = co_await request_token(client, pod, names.service_account, request);
    if (!token) co_return fail_in("asking for a token of the service account", token.error());
    out.tokens[token_key(request)] = std::move(*token);
  }
  co_return out;
}

}  // namespace grapnel::local::kubelet
