// How we prove to the API server who we are.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/result.h"
#include "kube/client.h"

namespace grapnel::kube {

// A bearer token that changes over time.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual Task<Result<std::string>> token() = 0;  // "": none is needed
  // This one was refused: forget it. False when no other can be had.
  virtual bool renew(std::string_view refused) = 0;
};

// Reads the file again each minute: Kubernetes renews the tokens of pods there. When that fails the
// old token is used on.
std::unique_ptr<TokenSource> token_from_file(std::string path, Clock& clock = system_clock());

// These headers on every request, and the token of the source where there is one.
std::shared_ptr<Credentials> make_credentials(http::Headers headers,
                                              std::unique_ptr<TokenSource> source);

}  // namespace grapnel::kube
