# SPDX-License-Identifier: MIT
# What `torchspan build` puts under its prefix: libraries, header, modules, and how to find them.
include(CMakePackageConfigHelpers)

install(TARGETS torchspan EXPORT torchspan)
install(FILES include/torchspan.h include/torchspan_tensor.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET torchspan_python)
  install(TARGETS torchspan_python DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
set(packages torchspan)
if(TARGET torchspan_fortran)
  install(TARGETS torchspan_fortran EXPORT torchspan)
  install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fortran/modules/
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/torchspan)
  list(APPEND packages torchspan-fortran)
endif()

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/torchspan)
install(EXPORT torchspan NAMESPACE torchspan:: FILE torchspan-config.cmake
  DESTINATION ${config_folder})
write_basic_package_version_file(torchspan-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/torchspan-config-version.cmake
  DESTINATION ${config_folder})
foreach(package ${packages})
  configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
