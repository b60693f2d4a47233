// From a kubeconfig, or from inside a pod, to a Client that is ready to be used.
#pragma once

#include <memory>
#include <string>

#include "kube/access.h"
#include "kube/client.h"

namespace grapnel::kube {

struct Connection {
  std::unique_ptr<Client> client;
  std::string ns;       // where a person works who names none
  std::string context;  // "" inside a cluster
};

// Opens nothing yet; a server that does not answer shows at the first call. `client` says all but
// the server and how to reach it.
Result<Connection> connect(Executor executor, const AccessOptions& options,
                           ClientOptions client = {});
Result<Connection> connect(Executor executor, Access access, ClientOptions client = {});

}  // namespace grapnel::kube
