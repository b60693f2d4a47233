#include "cli/cluster_identity.h"

#include <vector>

#include "document/json.h"

namespace grapnel::cli {
namespace {

constexpr std::chrono::days kCertificateLife{365};
// A cluster is started more often than this.
constexpr std::chrono::days kRenewBefore{180};

const std::vector<std::string> kNames{"127.0.0.1",
                                      "localhost",
                                      "10.96.0.1",  // of the service `kubernetes`
                                      "kubernetes",
                                      "kubernetes.default",
                                      "kubernetes.default.svc",
                                      "kubernetes.default.svc.cluster.local"};

std::string joined_names() {
  std::string text;
  for (const auto& name : kNames) text += name + " ";
  return text;
}

Result<ClusterIdentity> make_identity(Time now) {
  const Time end = now + kCertificateLife;
  auto authority = http::make_authority(
      {.common_name = "grapnel", .not_before = now - hours(1), .not_after = end});
  if (!authority) return fail(authority.error());
  auto server = http::make_certificate(
      *authority,
      {.common_name = "grapnel", .names = kNames, .not_before = now - hours(1), .not_after = end});
  if (!server) return fail(server.error());
  auto token = http::random_token();
  if (!token) return fail(token.error());
  return ClusterIdentity{std::move(*authority), std::move(*server), std::move(*token)};
}

Json to_json(const http::CertificateAndKey& pair) {
  return JsonObject{{"certificate", pair.certificate_pem}, {"key", pair.key_pem}};
}

http::CertificateAndKey pair_of(const Json* json) {
  if (json == nullptr) return {};
  return {.certificate_pem = std::string(string_or(find(*json, "certificate"))),
          .key_pem = std::string(string_or(find(*json, "key")))};
}

// Whatever is wrong with the file: an identity is quickly made.
std::optional<ClusterIdentity> kept_identity(const ClusterPaths& paths, Time now) {
  const auto text = read_file(paths.identity());
  const auto json = text ? parse_json(*text) : fail(text.error());
  if (!json || string_or(find(*json, "names")) != joined_names()) return std::nullopt;
  ClusterIdentity identity{.authority = pair_of(find(*json, "authority")),
                           .server = pair_of(find(*json, "server")),
                           .token = std::string(string_or(find(*json, "token")))};
  const int64_t port = int_or(find(*json, "port"), 0);
  if (port > 0 && port < 65536) identity.port = static_cast<uint16_t>(port);
  const bool is_whole = !identity.token.empty() && !identity.authority.key_pem.empty() &&
                        !identity.server.key_pem.empty();
  if (!is_whole) return std::nullopt;
  for (const auto* pair : {&identity.authority, &identity.server}) {
    const auto end = http::certificate_expiry(pair->certificate_pem);
    if (!end || *end < now + kRenewBefore) return std::nullopt;
  }
  return identity;
}

}  // namespace

Result<ClusterIdentity> identity_of_cluster(const ClusterPaths& paths, Time now) {
  if (auto kept = kept_identity(paths, now)) return *kept;
  auto made = make_identity(now);
  if (!made) return made;
  if (auto kept = keep_identity(paths, *made); !kept) return fail(kept.error());
  return made;
}

Result<> keep_identity(const ClusterPaths& paths, const ClusterIdentity& identity) {
  return write_private_file(paths.identity(),
                            to_text(JsonObject{{"names", joined_names()},
                                               {"authority", to_json(identity.authority)},
                                               {"server", to_json(identity.server)},
                                               {"token", identity.token},
                                               {"port", identity.port}}));
}

}  // namespace grapnel::cli
