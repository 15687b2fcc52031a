// SPDX-License-Identifier: MIT
// What went wrong last in each thread, and the library's version.
#include "status.hpp"

#include <exception>
#include <new>
#include <string_view>

#include "embedded.hpp"

namespace torchspan {
namespace {

thread_local std::string last_message;
thread_local const char* last_text = "";

}  // namespace

std::string first_line(const char* what) {
  std::string_view text(what);
  text = text.substr(0, text.find('\n'));
  return std::string(text);
}

bool lacks_memory(std::string_view text) {
  return text.find("can't allocate memory") != text.npos || text.find("out of memory") != text.npos;
}

Outcome current_outcome() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code, error.what()};
  } catch (const std::bad_alloc&) {
    return {TSPAN_ERROR_MEMORY, "the host has too little memory for this call."};
  } catch (const std::exception& error) {
    const std::string what = first_line(error.what());
    return {lacks_memory(what) ? TSPAN_ERROR_MEMORY : TSPAN_ERROR, what};
  } catch (...) {
    return {TSPAN_ERROR, "an exception of unknown kind arose."};
  }
}

tspan_status keep_outcome(Outcome&& outcome) noexcept {
  if (outcome.code != TSPAN_OK) {
    last_message = std::move(outcome.message);
    last_text = last_message.c_str();
  }
  return outcome.code;
}

tspan_status keep_current() noexcept {
  try {
    return keep_outcome(current_outcome());
  } catch (...) {
    last_text = "the host has too little memory, even for this call's message.";
    return TSPAN_ERROR_MEMORY;
  }
}

}  // namespace torchspan

const char* tspan_last_error(void) { return torchspan::last_text; }

tspan_status tspan_error_keep(tspan_status status, const char* message) {
  try {
    return torchspan::keep_outcome({status, message == nullptr ? "" : message});
  } catch (...) {
    return torchspan::keep_current();
  }
}

const char* tspan_version(void) { return torchspan::version; }

int tspan_abi_version(void) { return TSPAN_ABI_VERSION; }
