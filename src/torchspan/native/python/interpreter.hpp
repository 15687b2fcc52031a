// SPDX-License-Identifier: MIT
// The interpreter: started once, and entered for each call.
#pragma once

#include <Python.h>

#include <string>

namespace torchspan {

// Start an interpreter as the environment of `python` has it, unless one runs in this process.
void start_python(const std::string& python);

// Fail in a process that was forked from one in which torchspan had started Python.
void require_python();

// Have Python know this thread from now until it ends: to make its acquaintance in each call would
// cost more than a small script does.
void keep_thread();

// What a thread holds while it is in Python.
class Inside {
 public:
  Inside() {
    keep_thread();
    state_ = PyGILState_Ensure();
  }
  ~Inside() { PyGILState_Release(state_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  PyGILState_STATE state_;
};

// Whether torchspan started the interpreter, so that nobody else looks after it.
bool python_is_ours();

}  // namespace torchspan
