#!/bin/sh
# SPDX-License-Identifier: MIT
# Build torch_ftn and the samples into build/install, with the compiler that this script's name
# says: make_intel.sh and make_nvhpc.sh are the same script. FFLAGS adds options such as -fopenacc.
set -eu
cd "$(dirname "$0")"
flags=${FFLAGS:-}
case $(basename "$0") in
  make_gcc.sh) compiler=gfortran ;;
  make_intel.sh) compiler=ifx ;;
  make_nvhpc.sh) compiler=nvfortran flags="-acc $flags" ;;
  *) echo "$0: call this script make_gcc.sh, make_intel.sh or make_nvhpc.sh." >&2; exit 1 ;;
esac
for tool in "$compiler" torchspan cmake; do
  command -v "$tool" > /dev/null && continue
  echo "$0: there is no $tool on the PATH. README.md says what to install." >&2
  exit 1
done
export FFLAGS="$flags"
torchspan build --prefix build/install --fc "$compiler" --with torch_ftn
cmake -S . -B "build/samples-$compiler" -DCMAKE_Fortran_COMPILER="$compiler" \
  -DCMAKE_Fortran_FLAGS="$flags" \
  -DCMAKE_PREFIX_PATH="$PWD/build/install" -DCMAKE_INSTALL_PREFIX="$PWD/build/install" \
  -DCMAKE_BUILD_TYPE=Release
cmake --build "build/samples-$compiler"
cmake --install "build/samples-$compiler"
