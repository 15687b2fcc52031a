# SPDX-License-Identifier: MIT
# Find the Python that torch_folder is installed in, for models that are scripts.
#
# Sets TORCHSPAN_PYTHON_EXECUTABLE, _VERSION, _LIBRARY (empty where it has none that a program can
# open) and _INCLUDE, or else TORCHSPAN_NO_PYTHON: why there are no scripts. The library puts the
# same question to a Python that a user names at run time.
set(TORCHSPAN_PYTHON_QUESTION "
import os, sys, sysconfig
from importlib.util import find_spec
known = sysconfig.get_config_var
name = 'libpython' + (known('LDVERSION') or known('VERSION')) + '.so.1.0'
folder = known('LIBDIR') or ''
folders = [folder, os.path.join(folder, known('MULTIARCH') or '')]
folders.append(os.path.join(sys.base_prefix, 'lib'))
include = sysconfig.get_path('include')
torch = find_spec('torch')
print(sys.executable)
print('%d.%d' % sys.version_info[:2])
print(next(filter(os.path.exists, [os.path.join(each, name) for each in folders]), ''))
print(include if os.path.exists(os.path.join(include, 'Python.h')) else '')
print(os.path.realpath(torch.submodule_search_locations[0]) if torch else '')
")

set(TORCHSPAN_NO_PYTHON "no Python has the torch in ${torch_folder}, which torchspan was built \
with. Build it again with -DTORCHSPAN_PYTHON=, the Python that torch is installed in.")
file(REAL_PATH ${torch_folder} torch_real)
foreach(each ${TORCHSPAN_PYTHON} ${torch_folder}/../../../../bin/python3
    ${package}/../../../../bin/python3)
  execute_process(COMMAND ${each} -c "${TORCHSPAN_PYTHON_QUESTION}"
    OUTPUT_VARIABLE answer ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    continue()
  endif()
  string(REPLACE "\n" ";" answer "${answer}")
  list(GET answer 4 torch_of_python)
  if(NOT torch_of_python STREQUAL torch_real)
    continue()
  endif()
  list(GET answer 0 TORCHSPAN_PYTHON_EXECUTABLE)
  list(GET answer 1 TORCHSPAN_PYTHON_VERSION)
  list(GET answer 2 TORCHSPAN_PYTHON_LIBRARY)
  list(GET answer 3 TORCHSPAN_PYTHON_INCLUDE)
  set(TORCHSPAN_NO_PYTHON "")
  if(NOT TORCHSPAN_PYTHON_INCLUDE)
    set(TORCHSPAN_NO_PYTHON "${TORCHSPAN_PYTHON_EXECUTABLE} had no Python.h when torchspan was \
built. Install it (Debian and Ubuntu: apt-get install python${TORCHSPAN_PYTHON_VERSION}-dev; \
Fedora and RHEL: dnf install python${TORCHSPAN_PYTHON_VERSION}-devel) and build torchspan again.")
  elseif(NOT EXISTS ${torch_folder}/lib/libtorch_python.so)
    set(TORCHSPAN_NO_PYTHON "the torch in ${torch_folder} has no lib/libtorch_python.so. Install \
torch with pip, and build torchspan again.")
  endif()
  break()
endforeach()
if(TORCHSPAN_NO_PYTHON)
  message(STATUS "torchspan: no models that are scripts: ${TORCHSPAN_NO_PYTHON}")
else()
  message(STATUS "torchspan: scripts run in ${TORCHSPAN_PYTHON_EXECUTABLE}")
endif()
