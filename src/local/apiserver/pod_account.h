// The service account of a new pod.
#pragma once

#include "local/apiserver/api.h"

namespace grapnel::local {

// Without a name: the namespace's own. That one need not be there yet; others must.
Answer<> set_service_account(const Api& api, std::string_view ns, JsonObject& pod);

}  // namespace grapnel::local
