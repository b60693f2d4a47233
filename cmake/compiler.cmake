# The compiler and its flags.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR
    "g++ ${CMAKE_CXX_COMPILER_VERSION} miscompiles C++20 coroutines: use clang 16 or newer "
    "(cmake -DCMAKE_CXX_COMPILER=clang++-19, or the presets, which do so).")
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(FATAL_ERROR "clang ${CMAKE_CXX_COMPILER_VERSION} is too old: use clang 16 or newer.")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

option(GRAPNEL_TESTS "Build the tests" ON)
option(GRAPNEL_BENCH "Build the benchmarks" OFF)
set(GRAPNEL_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror
                    # Options are structs of which a caller names only what differs from the default.
                    -Wno-missing-field-initializers
                    -pthread -fno-omit-frame-pointer -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
# Line tables are enough for a stack trace, and build and link much faster than full debug info.
# Coroutines under the sanitizers compile twice as fast unoptimised.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -gline-tables-only" CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_RELEASE "-O2" CACHE STRING "" FORCE)

if(GRAPNEL_SANITIZE)
  add_compile_options(-fsanitize=${GRAPNEL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GRAPNEL_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Fuzz targets link the same objects as the tests; only they link the fuzzer's main function.
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
  endif()
endif()

find_program(LLD NAMES ld.lld-19 ld.lld)
if(LLD)
  add_link_options(-fuse-ld=${LLD})
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections -Wl,--as-needed -s)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Checkouts in different folders share one cache. A precompiled header has its folder in it, so the
  # cache goes by its sum (cmake/precompiled.cmake).
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 CCACHE_MAXSIZE=10G ${CCACHE})
endif()
