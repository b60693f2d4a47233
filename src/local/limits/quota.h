// A ResourceQuota: what it limits, and why a new object would exceed it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "local/limits/usage.h"

namespace grapnel::local {

struct Quota {
  std::string name;
  Usage hard;
  std::vector<std::string> scopes;

  static Quota from_json(const Json& object);
  // Whether its scopes take in this object.
  bool covers(const Json& object, std::string_view plural) const;
  // The part of a usage that it limits.
  Usage limited(const Usage& usage) const;
};

// Why the object is refused, in Kubernetes' words; nothing when it fits. `used` is what all others
// use already.
std::optional<std::string> why_beyond(const Quota& quota, const Usage& used, const Json& object,
                                      std::string_view group, std::string_view plural);

}  // namespace grapnel::local
