# SPDX-License-Identifier: MIT
# The version of the sources, for find_package(torchspan VERSION).
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../../_version.py torchspan_line REGEX "^__version__")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" PACKAGE_VERSION "${torchspan_line}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
