#include "base/memory.h"

#include <malloc.h>

namespace grapnel {

void give_back_memory() {
  ::malloc_trim(0);
}

}  // namespace grapnel
