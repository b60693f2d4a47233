// Certificates that we make ourselves, for the laptop's API server and the webhook server: a small
// certificate authority and what it signs, as PEM texts. ECDSA on P-256.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace grapnel::http {

struct CertificateAndKey {
  std::string certificate_pem;
  std::string key_pem;
};

struct CertificateOptions {
  std::string common_name;
  std::vector<std::string> organizations;  // a client's groups, as Kubernetes reads them
  std::vector<std::string> names;          // DNS names and IP addresses it is valid for
  Time not_before;
  Time not_after;
  bool for_client = false;  // otherwise for a server
};

Result<CertificateAndKey> make_authority(const CertificateOptions& options);
Result<CertificateAndKey> make_certificate(const CertificateAndKey& authority,
                                           const CertificateOptions& options);

// When the first certificate of this PEM text ends.
Result<Time> certificate_expiry(std::string_view certificate_pem);

// Secret bytes from the system, as hexadecimal digits: two for each byte.
Result<std::string> random_token(size_t bytes = 32);

}  // namespace grapnel::http
