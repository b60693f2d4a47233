// What the process holds of the machine's memory.
#pragma once

namespace grapnel {

// Gives back to the system what was freed, and code that is not needed any more: after something
// large that happens once.
void give_back_memory();

}  // namespace grapnel
