// SPDX-License-Identifier: MIT
// Results land in the caller's memory; one that does not fit is an error, never a wrong write.
#include "runner.hpp"
#include "status.hpp"

namespace torchspan {

void Landing::expect(std::size_t count) const {
  if (count == outputs_.size()) return;
  fail(TSPAN_ERROR_ARGUMENT, outputs_.size(),
       outputs_.size() == 1 ? " output was" : " outputs were", " given; this model gives ", count,
       ".");
}

void Landing::check(std::size_t index, const View& result) const {
  const View& output = outputs_[index];
  if (output.dtype != result.dtype || !output.same_shape(result)) {
    fail(TSPAN_ERROR_ARGUMENT, "output ", index, " has dtype ", output.dtype->name, " and shape ",
         output.shape_text(), "; the result has ", result.dtype->name, " and ", result.shape_text(),
         ". Give an array of that dtype and shape.");
  }
}

void Landing::take(std::size_t index, const View& result) const {
  check(index, result);
  copy_elements(outputs_[index], result);
}

}  // namespace torchspan
