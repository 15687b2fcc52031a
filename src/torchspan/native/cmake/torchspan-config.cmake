# SPDX-License-Identifier: MIT
# find_package(torchspan) on the sources: they become part of the user's build, compiled by the
# user's compilers. Targets: torchspan::torchspan and, where Fortran is enabled, torchspan::fortran.
if(TARGET torchspan::torchspan)
  return()
endif()
if(CMAKE_VERSION VERSION_LESS 3.25)
  set(torchspan_FOUND FALSE)
  set(torchspan_NOT_FOUND_MESSAGE "torchspan needs CMake 3.25 or newer.")
  return()
endif()
enable_language(C)
enable_language(CXX)
get_filename_component(torchspan_sources ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
add_subdirectory(${torchspan_sources} ${CMAKE_BINARY_DIR}/torchspan EXCLUDE_FROM_ALL)
