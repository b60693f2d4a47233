#include "runtime/cache.h"

namespace grapnel::runtime {

void CacheBase::advance(kube::ResourceVersion version) {
  last_version_ = version;
  for (const auto& listener : listeners_) listener();
}

}  // namespace grapnel::runtime
