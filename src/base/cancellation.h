// For code between a Task and its cancellation that must catch exceptions.
#pragma once

#include <exception>

namespace grapnel {

// Whether this is how a cancelled Task ends: not to be caught for good.
bool is_cancellation(const std::exception_ptr& error);

}  // namespace grapnel
