// Webhooks of kinds that this program brings along: called without a connection, before all others.
#pragma once

#include "document/json.h"

namespace grapnel::runtime {
class Admission;
}

namespace grapnel::local {

struct ResidentWebhooks {
  // The configurations, as they would be installed on another cluster; null: none.
  Json mutating;
  Json validating;
  const runtime::Admission* admission = nullptr;  // outlives the server
};

}  // namespace grapnel::local
