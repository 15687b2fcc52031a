// SPDX-License-Identifier: MIT
// Start Python in a program that is not Python's.
//
// It is never finalised: other threads of the program may be in a script when the program ends, and
// torch's own libraries hold Python objects until after that.
#include "interpreter.hpp"

#include <unistd.h>

#include <mutex>

#include "../src/status.hpp"

namespace torchspan {
namespace {

int started_by = 0;  // the process that started Python; 0 where it ran already

struct Kept {
  PyGILState_STATE state = PyGILState_Ensure();
  PyThreadState* thread = PyEval_SaveThread();

  ~Kept() {
    // A forked child has the thread's memory, but no Python.
    if (started_by != ::getpid()) return;
    PyEval_RestoreThread(thread);
    PyGILState_Release(state);
  }
};

void require_success(PyStatus status, PyConfig* config) {
  if (!PyStatus_Exception(status)) return;
  const std::string why = status.err_msg != nullptr ? status.err_msg : "it does not say why";
  if (config != nullptr) PyConfig_Clear(config);
  fail(TSPAN_ERROR_MODEL_FILE, "Python cannot be started: ", why,
       ". Check the environment's PYTHON variables, such as PYTHONHOME.");
}

}  // namespace

void start_python(const std::string& python) {
  static std::mutex starting;
  std::lock_guard lock(starting);
  if (Py_IsInitialized()) return;
  PyPreConfig before;
  PyPreConfig_InitPythonConfig(&before);
  before.parse_argv = 0;
  // The program's locale and variables are its own.
  before.configure_locale = 0;
  before.coerce_c_locale = 0;
  before.utf8_mode = 1;
  require_success(Py_PreInitialize(&before), nullptr);
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.parse_argv = 0;
  config.install_signal_handlers = 0;
  config.configure_c_stdio = 0;
  // By its interpreter's path Python finds the environment's packages.
  require_success(PyConfig_SetBytesString(&config, &config.executable, python.c_str()), &config);
  require_success(Py_InitializeFromConfig(&config), &config);
  PyConfig_Clear(&config);
  started_by = ::getpid();
  PyEval_SaveThread();
}

void require_python() {
  if (started_by == 0 || started_by == ::getpid()) return;
  fail(TSPAN_ERROR_MODEL,
       "Python was started before this process was forked, and does not survive a fork. Open "
       "scripts only in the process that calls them, after the fork.");
}

void keep_thread() {
  // A thread that Python knows by itself also forgets it by itself.
  thread_local bool known = false;
  if (known || !python_is_ours()) return;
  known = true;
  if (PyGILState_GetThisThreadState() != nullptr) return;
  thread_local Kept kept;
}

bool python_is_ours() { return started_by != 0; }

}  // namespace torchspan
