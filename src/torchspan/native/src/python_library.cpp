// SPDX-License-Identifier: MIT
// Find Python's library and torchspan's beside this one, and open both: no program without scripts
// pays for Python or needs it.
#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "embedded.hpp"
#include "python_script.hpp"
#include "status.hpp"

namespace torchspan {
namespace {

constexpr const char* variable = "TORCHSPAN_PYTHON";

template <class Function>
std::filesystem::path library_of(Function* function) {
  Dl_info found;
  if (::dladdr(reinterpret_cast<void*>(function), &found) == 0) {
    fail(TSPAN_ERROR, "the system does not say where torchspan's libraries lie.");
  }
  return std::filesystem::canonical(found.dli_fname);
}

// The interpreter of the environment that torch comes from, unless the user names another.
std::string python() {
  const char* named = std::getenv(variable);
  return named != nullptr && *named != '\0' ? named : python_executable;
}

// Ask a Python for the path of its shared library; empty where it has none.
std::string ask_library(const std::string& python) {
  std::string quoted = "'";
  for (char each : python) quoted += each == '\'' ? std::string("'\\''") : std::string(1, each);
  const std::string command = quoted + "' -c \"" + python_question + "\" 2>/dev/null";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) fail(TSPAN_ERROR, "no process can be started to ask ", python, ".");
  std::string answer;
  std::array<char, 512> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) answer += buffer.data();
  if (::pclose(pipe) != 0) {
    fail(TSPAN_ERROR_MODEL_FILE, python,
         " is no Python that runs here. Scripts need the Python that torch is installed in: set ",
         variable, " to its path.");
  }
  std::istringstream lines(answer);
  std::string line;
  for (int number = 0; number < 3; ++number) std::getline(lines, line);
  return line;
}

// The version of the Python in this process's global names, such as "3.11.7 (main, ...)".
const char* global_version() {
  auto version = reinterpret_cast<const char* (*)()>(::dlsym(RTLD_DEFAULT, "Py_GetVersion"));
  return version == nullptr ? nullptr : version();
}

// Python's own modules look its names up among the global ones, and are not linked to it.
void open_python(const std::string& python) {
  std::string path = python == python_executable ? python_library : "";
  if (path.empty() || !std::filesystem::exists(path)) path = ask_library(python);
  if (path.empty()) {
    fail(TSPAN_ERROR_MODEL_FILE, "the Python ", python, " has no shared library libpython",
         python_version, ".so, which a program needs to run scripts. Debian and Ubuntu: apt-get ",
         "install libpython", python_version, "; pyenv: install it again with ",
         "PYTHON_CONFIGURE_OPTS=--enable-shared; conda and uv bring it along.");
  }
  if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    fail(TSPAN_ERROR_MODEL_FILE, "Python's library cannot be opened: ", ::dlerror(), ".");
  }
}

const PythonLibrary& open_library(const std::string& python) {
  if (*no_python != '\0') fail(TSPAN_ERROR_MODEL_FILE, "scripts cannot run here: ", no_python);
  if (global_version() == nullptr) open_python(python);
  const char* running = global_version();
  if (!say(running).starts_with(say(python_version, "."))) {
    fail(TSPAN_ERROR_MODEL_FILE, "the Python here is ", running, ", and torch's is ",
         python_version, ". Set ", variable, " to the Python that torch is installed in.");
  }
  const auto path = library_of(&open_library).parent_path() / "libtorchspan_python.so";
  void* opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    fail(TSPAN_ERROR_MODEL_FILE, "scripts need ", path.string(),
         ", which cannot be opened: ", ::dlerror(),
         ". Keep it beside libtorchspan.so, or build both again.");
  }
  auto* found = static_cast<const PythonLibrary*>(::dlsym(opened, "torchspan_python"));
  if (found == nullptr || std::string(found->version) != version) {
    fail(TSPAN_ERROR_MODEL_FILE, path.string(), " is not of torchspan ", version,
         ". Build it again together with libtorchspan.so.");
  }
  return *found;
}

}  // namespace

std::shared_ptr<PythonScript> open_python_script(const std::string& path,
                                                 const std::string& device) {
  static std::mutex opening;
  static const PythonLibrary* library = nullptr;
  const std::string executable = python();
  {
    std::lock_guard lock(opening);
    if (library == nullptr) library = &open_library(executable);
  }
  const auto torch = library_of(&at::get_num_threads).parent_path();
  return library->open(executable, torch.string(), path, device);
}

}  // namespace torchspan
