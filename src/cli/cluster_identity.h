// What a laptop cluster is known by, from one start to the next: its certificates, its token and
// its port. Who follows the cluster, or has its kubeconfig, finds it again after a restart.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/paths.h"
#include "http/certificates.h"

namespace grapnel::cli {

struct ClusterIdentity {
  http::CertificateAndKey authority;
  http::CertificateAndKey server;
  std::string token;
  uint16_t port = 0;  // 0: not known yet
};

// The one that is kept; a new one where there is none, or its certificates end soon.
Result<ClusterIdentity> identity_of_cluster(const ClusterPaths& paths, Time now);
Result<> keep_identity(const ClusterPaths& paths, const ClusterIdentity& identity);

}  // namespace grapnel::cli
