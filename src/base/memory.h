// How much of the machine's memory the process holds.
#pragma once

namespace grapnel {

// Returns freed memory, and code that is no longer needed, to the system. Call it after something
// large that happens once.
void give_back_memory();

}  // namespace grapnel
