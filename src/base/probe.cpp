#include "base/probe.h"

#include <algorithm>

namespace grapnel {

std::vector<const Probe*> Probe::all() {
  std::vector<const Probe*> out;
  for (const Probe* probe = first_; probe != nullptr; probe = probe->next_) out.push_back(probe);
  std::ranges::sort(out, {}, &Probe::name);
  return out;
}

}  // namespace grapnel
