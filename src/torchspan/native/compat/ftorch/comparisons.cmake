# SPDX-License-Identifier: MIT
# Write the comparisons of ftorch_test_utils, which differ in nothing but kind and rank.
set(comparisons "")
set(array_procedures "")
set(number_procedures "")
foreach(kind real32 real64)
  foreach(rank 0 1 2 3)
    set(name close_${kind}_${rank})
    if(rank EQUAL 0)
      set(colons "")
      set(fits ".true.")
      set(all "")
      list(APPEND number_procedures ${name})
    else()
      string(REPEAT ":, " ${rank} colons)
      string(REGEX REPLACE "(.*), " "(\\1)" colons "${colons}")
      set(fits "all(shape(got) == shape(expect))")
      set(all "all")
      list(APPEND array_procedures ${name})
    endif()
    if(rank EQUAL 0)
      set(worst "worst = abs(real(got, real64) - expect) / &
      max(abs(real(expect, real64)), tiny(worst))")
    else()
      set(worst "if (size(got) > 0) worst = maxval(abs(real(got, real64) - expect) / &
      max(abs(real(expect, real64)), tiny(worst)))")
    endif()
    string(APPEND comparisons "
  function ${name}(got, expect, test_name, rtol, print_result) result(pass)
    real(${kind}), intent(in) :: got${colons}
    real(${kind}), intent(in) :: expect${colons}
    character(*), intent(in), optional :: test_name
    !> Of the numbers expected; 1e-5 by default
    real(${kind}), intent(in), optional :: rtol
    logical, intent(in), optional :: print_result
    logical :: pass

    real(real64) :: worst
    real(${kind}) :: tolerance

    tolerance = 1e-5_${kind}
    if (present(rtol)) tolerance = rtol
    worst = huge(worst)
    pass = ${fits}
    if (pass) then
      worst = 0
      ${worst}
      pass = ${all}(abs(got - expect) <= tolerance * abs(expect))
    end if
    call say(pass, worst, test_name, print_result)
  end function ${name}
")
  endforeach()
endforeach()
list(JOIN array_procedures ", &\n      " array_procedures)
list(JOIN number_procedures ", &\n      " number_procedures)
