// SPDX-License-Identifier: MIT
// Exceptions inside, statuses outside: every C entry point runs its body in guarded().
#pragma once

#pragma GCC visibility push(default)
#include "torchspan.h"
#pragma GCC visibility pop

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace torchspan {

// A failure with a code of torchspan's own; its text says what was given, expected, and to do.
class Error : public std::runtime_error {
 public:
  Error(tspan_status code, const std::string& message) : std::runtime_error(message), code(code) {}
  const tspan_status code;
};

// How a piece of work ended, to be carried from one thread to another.
struct Outcome {
  tspan_status code = TSPAN_OK;
  std::string message;
};

// One text of several parts: numbers, texts, characters.
template <class... Parts>
std::string say(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

template <class... Parts>
[[noreturn]] void fail(tspan_status code, const Parts&... parts) {
  throw Error(code, say(parts...));
}

// The exception that is being handled, as an outcome; to be called inside a catch block.
Outcome current_outcome();

// The first line of what an exception says, without the C++ stack that torch appends.
std::string first_line(const char* what);

// Whether an exception's text says that a device or the host has too little memory.
bool lacks_memory(std::string_view text);

// Make an outcome this thread's last one.
tspan_status keep_outcome(Outcome&& outcome) noexcept;
tspan_status keep_current() noexcept;

// Run a C entry point's body: whatever it throws becomes a status and this thread's message.
template <class Body>
tspan_status guarded(Body&& body) noexcept {
  try {
    body();
    return TSPAN_OK;
  } catch (...) {
    return keep_current();
  }
}

// Check that a pointer that C gave is one; `what` names it.
inline void require(const void* pointer, const char* what) {
  if (pointer == nullptr) {
    fail(TSPAN_ERROR_ARGUMENT, what, " is NULL; give a pointer.");
  }
}

}  // namespace torchspan
