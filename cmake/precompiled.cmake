# grapnel_precompile(TARGET): precompiled.h is parsed once, for all targets of a build with tests.
# The release build goes without it: so it is known that every file includes what it uses.
#
# Beside the result lies a sum of all that went into it. The compiler cache goes by that sum, since
# the file itself has the folder of the checkout in it.

if(GRAPNEL_TESTS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(result ${CMAKE_BINARY_DIR}/precompiled.pch)
  get_directory_property(options COMPILE_OPTIONS)
  separate_arguments(build_type UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_DEBUG}")
  set(compile ${CMAKE_CXX_COMPILER} ${build_type} ${options} -std=c++20 -x c++-header
      -DBOOST_JSON_DYN_LINK -DBOOST_CONTAINER_DYN_LINK -DBOOST_JSON_NO_LIB -DBOOST_CONTAINER_NO_LIB
      -DFMT_SHARED ${CMAKE_SOURCE_DIR}/cmake/precompiled.h)
  add_custom_command(OUTPUT ${result}
    COMMAND ${compile} -Xclang -fno-pch-timestamp -MD -MF ${result}.d -MT ${result} -o ${result}
    COMMAND ${compile} -E -P | sha256sum > ${result}.sum
    DEPFILE ${result}.d
    COMMENT "Parsing what most files include"
    VERBATIM)
  add_custom_target(grapnel_precompiled DEPENDS ${result})
endif()

function(grapnel_precompile target)
  if(TARGET grapnel_precompiled)
    add_dependencies(${target} grapnel_precompiled)
    target_compile_options(${target} PRIVATE "SHELL:-include-pch ${CMAKE_BINARY_DIR}/precompiled.pch")
    get_target_property(sources ${target} SOURCES)
    set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/precompiled.pch)
  endif()
endfunction()
