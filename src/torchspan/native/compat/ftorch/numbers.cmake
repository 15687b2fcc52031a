# SPDX-License-Identifier: MIT
# Write the operators between tensors and numbers, which differ in nothing but the number's kind.
set(number_operators "")
set(power_procedures "")
foreach(kind int8 int16 int32 int64 real32 real64)
  if(kind MATCHES "^real")
    string(REPLACE "real32" "real(c_float)" declaration ${kind})
    string(REPLACE "real64" "real(c_double)" declaration ${declaration})
    set(is_real 1)
    set(power "c_power(handle_of(tensor), real(number, c_double))")
  else()
    set(declaration "integer(c_${kind}_t)")
    set(is_real 0)
    set(power "c_power_integer(handle_of(tensor), int(number, c_int64_t))")
  endif()
  list(APPEND power_procedures power_${kind})
  string(APPEND number_operators "
  function power_${kind}(tensor, number) result(power)
    type(torch_tensor), intent(in) :: tensor
    ${declaration}, intent(in) :: number
    type(torch_tensor) :: power

    power%p = ${power}
    power%is_temporary = .true.
  end function power_${kind}
")
  set(code 0)
  foreach(name plus minus times over)
    foreach(order 0 1)
      set(arguments tensor number)
      if(order)
        list(REVERSE arguments)
      endif()
      list(JOIN arguments "_" words)
      list(JOIN arguments ", " dummies)
      set(procedure ${name}_${words}_${kind})
      string(APPEND ${name}_procedures ", &\n      ${procedure}")
      string(APPEND number_operators "
  function ${procedure}(${dummies}) result(combined)
    type(torch_tensor), intent(in) :: tensor
    ${declaration}, intent(in) :: number
    type(torch_tensor) :: combined

    combined%p = c_combine_number(${code}, handle_of(tensor), real(number, c_double), ${order}, &
                                  ${is_real})
    combined%is_temporary = .true.
  end function ${procedure}
")
    endforeach()
    math(EXPR code "${code} + 1")
  endforeach()
endforeach()
list(JOIN power_procedures ", &\n      " power_procedures)
