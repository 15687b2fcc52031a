# SPDX-License-Identifier: MIT
# Find the Fortran compiler's ISO_Fortran_binding.h, into descriptor_folder: its layout is the
# compiler's own, so the C compiler's would be the wrong one where the two differ.
set(descriptor_header "")
if(CMAKE_Fortran_COMPILER_ID STREQUAL GNU)
  execute_process(
    COMMAND ${CMAKE_Fortran_COMPILER} -print-file-name=include/ISO_Fortran_binding.h
    OUTPUT_VARIABLE descriptor_header OUTPUT_STRIP_TRAILING_WHITESPACE)
else()
  get_filename_component(compiler_folder ${CMAKE_Fortran_COMPILER} REALPATH)
  get_filename_component(compiler_folder ${compiler_folder} DIRECTORY)
  find_file(TORCHSPAN_DESCRIPTOR_HEADER ISO_Fortran_binding.h NO_DEFAULT_PATH
    HINTS ${compiler_folder}/.. PATH_SUFFIXES include/flang include opt/compiler/include)
  set(descriptor_header ${TORCHSPAN_DESCRIPTOR_HEADER})
endif()
if(NOT EXISTS "${descriptor_header}")
  message(FATAL_ERROR "${CMAKE_Fortran_COMPILER} comes without ISO_Fortran_binding.h in a place "
    "known to torchspan. Give its path with -DTORCHSPAN_DESCRIPTOR_HEADER=.")
endif()
get_filename_component(descriptor_folder ${descriptor_header} DIRECTORY)
if(EXISTS ${descriptor_folder}/stddef.h)
  # The folder holds the headers of another C compiler too; take this one alone.
  configure_file(${descriptor_header} descriptor/ISO_Fortran_binding.h COPYONLY)
  set(descriptor_folder ${CMAKE_CURRENT_BINARY_DIR}/descriptor)
endif()
