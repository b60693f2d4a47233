// What every cluster has from the beginning, and what the server keeps in step with its objects.
#pragma once

#include "local/apiserver/api.h"

namespace grapnel::local {

// Takes over the kinds of stored definitions and the addresses of stored services, now and at every
// later change.
void follow_store(Api& api);
// Namespaces, their service accounts, the service of the API itself.
Task<Result<>> create_first_objects(Api& api, uint16_t port);
// A namespace has a default service account from the moment it exists.
Task<> create_default_account(Api& api, std::string ns);

}  // namespace grapnel::local
