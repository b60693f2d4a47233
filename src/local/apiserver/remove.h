// Deleting: preconditions, grace, finalizers, cascades.
#pragma once

#include <optional>
#include <string>

#include "local/apiserver/api.h"

namespace grapnel::local {

struct DeleteOptions {
  std::optional<int64_t> grace_seconds;
  std::string uid;  // preconditions
  std::string version;
  std::string propagation;  // Background, Foreground, Orphan; "": the kind's default
  std::optional<bool> orphan_dependents;
  bool dry_run = false;

  static DeleteOptions from_json(const Json& options);
  // From the body and the query.
  static Answer<DeleteOptions> parse(const Call& call);
};

struct Removed {
  ObjectPtr object;  // as it is now, or was last
  bool gone = false;
};
Task<Answer<Removed>> remove_one(Api& api, Call& call, std::string ns, std::string name,
                                 DeleteOptions options);

}  // namespace grapnel::local
