#include "runtime/external.h"

namespace grapnel::runtime {

const Fact* External::fact(std::string_view name) const {
  const auto found = facts.find(name);
  return found == facts.end() ? nullptr : &found->second;
}

const CallState* External::call(std::string_view id) const {
  const auto found = calls.find(id);
  return found == calls.end() ? nullptr : &found->second;
}

bool External::is_done(std::string_view id) const {
  const CallState* state = call(id);
  return state != nullptr && state->phase == CallState::Phase::kDone;
}

}  // namespace grapnel::runtime
