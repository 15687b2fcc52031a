# SPDX-License-Identifier: MIT
# Find how the Fortran compiler can take arrays of any kind and rank, and write the modules that do
# so into the build tree: one procedure for all arrays; or else `array` as a procedure for each rank
# and, for scalars, each kind, with procedures for arrays of array_type alone.
include(CheckSourceCompiles)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

function(check_dummy dummy result)
  check_source_compiles(Fortran "
    subroutine probe(x)
      interface
        subroutine c_probe(x) bind(c)
          type(*), dimension(..) :: x
        end subroutine c_probe
      end interface
      type(*), dimension(${dummy}), target :: x
      call c_probe(x)
    end subroutine probe" ${result} SRC_EXT f90)
endfunction()

check_dummy(".." TORCHSPAN_FORTRAN_TAKES_ANY_RANK)
if(TORCHSPAN_FORTRAN_TAKES_ANY_RANK)
  set(any_array "type(*), dimension(..)")
  set(declarations "${any_array}")
else()
  check_dummy(":" TORCHSPAN_FORTRAN_TAKES_ANY_KIND)
  if(NOT TORCHSPAN_FORTRAN_TAKES_ANY_KIND)
    message(FATAL_ERROR "${CMAKE_Fortran_COMPILER} (${CMAKE_Fortran_COMPILER_ID} "
      "${CMAKE_Fortran_COMPILER_VERSION}) cannot compile procedures with type(*) arguments. Choose "
      "a newer one, such as gfortran 12 or flang 22, with -DCMAKE_Fortran_COMPILER=.")
  endif()
  message(STATUS "torchspan: ${CMAKE_Fortran_COMPILER} cannot compile procedures with "
    "dimension(..) arguments, so run and submit take [array(x)] alone")
  set(any_array "type(array_type), dimension(:), intent(in)")
  set(declarations
    "integer(c_int8_t)" "integer(c_int16_t)" "integer(c_int32_t)" "integer(c_int64_t)"
    "real(c_float)" "real(c_double)" "complex(c_float)" "complex(c_double)" "logical(c_bool)")
  set(colons ":")
  foreach(rank RANGE 1 15)
    list(APPEND declarations "type(*), dimension(${colons})")
    string(APPEND colons ", :")
  endforeach()
endif()

set(procedures "")
set(bodies "")
foreach(declaration IN LISTS declarations)
  list(LENGTH procedures number)
  list(APPEND procedures array_${number})
  string(APPEND bodies "
  function array_${number}(x, device) result(taken)
    !> A variable or a section of one, which goes on existing until the call is done
    ${declaration}, intent(in), target :: x
    !> Whose memory it is in, such as \"cuda:0\"; if absent, its address tells
    character(len=*), intent(in), optional :: device
    type(array_type) :: taken

    call c_capture(x, taken)
    if (present(device)) call c_place(taken, trim(device)//c_null_char)
  end function array_${number}
")
endforeach()
list(JOIN procedures ", &\n      " procedures)
foreach(module torchspan_array torchspan_memory torchspan_model)
  configure_file(${module}.f90.in ${module}.f90 @ONLY)
endforeach()
