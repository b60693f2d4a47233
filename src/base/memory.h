// What the process holds of the machine's memory.
#pragma once

namespace grapnel {

// Gives freed memory back to the system: after something large that happens once.
void give_back_memory();

}  // namespace grapnel
