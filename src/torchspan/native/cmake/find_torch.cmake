# SPDX-License-Identifier: MIT
# Find the folder of torch, into torch_folder: the one that was named, or that lies beside
# torchspan, or that `python -m torchspan --cmake-dir` named, or that a Python says.
set(TORCHSPAN_LIBTORCH "" CACHE PATH "The folder of a torch package, or of a LibTorch")
set(TORCHSPAN_PYTHON python3 CACHE STRING "A Python to ask where its torch is")

set(torch_folder "")
if(TORCHSPAN_LIBTORCH)
  if(NOT EXISTS ${TORCHSPAN_LIBTORCH}/lib/libtorch_cpu.so)
    message(FATAL_ERROR "TORCHSPAN_LIBTORCH is ${TORCHSPAN_LIBTORCH}, where there is no "
      "lib/libtorch_cpu.so. Name the folder that holds lib and include.")
  endif()
  set(torch_folder ${TORCHSPAN_LIBTORCH})
else()
  get_filename_component(beside ${CMAKE_CURRENT_LIST_DIR}/../../../torch ABSOLUTE)
  foreach(folder ${beside} ${CMAKE_PREFIX_PATH})
    if(EXISTS ${folder}/lib/libtorch_cpu.so)
      set(torch_folder ${folder})
      break()
    endif()
  endforeach()
endif()
if(NOT torch_folder)
  execute_process(
    COMMAND ${TORCHSPAN_PYTHON} -c
      "from importlib.util import find_spec; print(*find_spec('torch').submodule_search_locations)"
    OUTPUT_VARIABLE torch_folder ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT EXISTS ${torch_folder}/lib/libtorch_cpu.so)
    message(FATAL_ERROR "There is no torch beside torchspan, and ${TORCHSPAN_PYTHON} has none. "
      "Give -DTORCHSPAN_PYTHON=, a Python with torch, or -DTORCHSPAN_LIBTORCH=, torch's folder.")
  endif()
endif()

set(torch_version "")
foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(NOT torch_version AND EXISTS ${torch_folder}/include/${header})
    file(STRINGS ${torch_folder}/include/${header} lines REGEX "TORCH_VERSION_M[A-Z]+ +[0-9]")
    string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*" "\\1.\\2" torch_version "${lines}")
  endif()
endforeach()
if(torch_version AND torch_version VERSION_LESS 2.11)
  message(FATAL_ERROR "The torch in ${torch_folder} is ${torch_version}; torchspan needs 2.11 or "
    "newer. Install one, or name another with -DTORCHSPAN_LIBTORCH=.")
endif()
message(STATUS "torchspan: torch ${torch_version} in ${torch_folder}")
