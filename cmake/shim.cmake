# grapnel-shim: the small program that holds a pod's processes, and its place inside grapnel.

file(GLOB shim_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/local/node/shim/*.cpp)
add_executable(grapnel-shim ${shim_sources})
target_include_directories(grapnel-shim PRIVATE ${CMAKE_SOURCE_DIR}/src)
# Every pod has one, so it is small: static, and without the C++ library. Sanitizers, which the rest may
# be built with, are left out: they need that library.
set_target_properties(grapnel-shim PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
  COMPILE_OPTIONS "-Wall;-Wextra;-Wpedantic;-Wshadow;-Werror;-Os;-fno-exceptions;-fno-rtti;-fno-threadsafe-statics;-fno-stack-protector;-ffunction-sections;-fdata-sections;-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/="
  LINK_OPTIONS "-static;-nostdlib++;-Wl,--gc-sections;-s")

# Its bytes become part of the library of this folder, which has a source shim_image.cpp for them.
function(grapnel_embed_shim path)
  string(REPLACE "/" "_" name ${path})
  set(source ${CMAKE_SOURCE_DIR}/src/${path}/shim_image.cpp)
  set_source_files_properties(${source} PROPERTIES
    COMPILE_DEFINITIONS "GRAPNEL_SHIM_FILE=\"${CMAKE_BINARY_DIR}/grapnel-shim\""
    OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/grapnel-shim)
  add_dependencies(grapnel_${name} grapnel-shim)
endfunction()
