#include "base/memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cinttypes>
#include <cstdio>
#include <string_view>

namespace grapnel {
namespace {

// Releases pages of programs and libraries. Those that are needed again come back from the system's
// file cache; those that only the start needed do not.
void forget_code() {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uintptr_t offset = 0;
    char rights[5] = {};
    char file[2] = {};
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNxPTR " %*s %*s %1s", &begin, &end,
                    rights, &offset, file) != 5 ||
        file[0] != '/') {
      continue;
    }
    // A read-only part further into a file may hold what the loader wrote there.
    const std::string_view may = rights;
    if (may == "r-xp" || (may == "r--p" && offset == 0)) {
      ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
  }
  std::fclose(maps);
}

}  // namespace

void give_back_memory() {
  ::malloc_trim(0);
  forget_code();
}

}  // namespace grapnel
