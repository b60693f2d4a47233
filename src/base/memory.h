// How much of the machine's memory the process holds.
#pragma once

namespace grapnel {

// Gives back to the system what was freed, and code that is not needed any more: after something
// large that happens once.
void give_back_memory();

}  // namespace grapnel
