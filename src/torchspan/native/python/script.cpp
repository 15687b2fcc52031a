// SPDX-License-Identifier: MIT
// Scripts by the rules of torchspan's Python package, whose module this library carries.
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/python_variable.h>

#include <filesystem>
#include <mutex>

#include "../src/python_script.hpp"
#include "../src/status.hpp"
#include "interpreter.hpp"
#include "rules.hpp"

namespace py = pybind11;

namespace torchspan {
namespace {

// Never taken apart: other threads may be in Python when the process ends.
py::object* rules = nullptr;

py::str path_text(const std::string& path) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

std::string utf8(const py::handle& text) {
  auto bytes = text.attr("encode")("utf-8", "surrogateescape");
  return py::reinterpret_borrow<py::bytes>(bytes);
}

// Say what Python raised, so that nothing of it is left; the caller is inside.
[[noreturn]] void rethrow(py::error_already_set& error) {
  std::string text;
  bool memory = false;
  {
    if (error.trace()) PyException_SetTraceback(error.value().ptr(), error.trace().ptr());
    auto told = py::reinterpret_borrow<py::tuple>(rules->attr("tell")(error.value()));
    const std::string trace = utf8(told[1]);
    text = utf8(told[0]) + (trace.empty() ? "" : "\n" + trace);
    memory = told[2].cast<bool>();
  }
  throw Raised(text, memory);
}

// Run `body` inside Python; what it raises leaves as Raised.
template <class Body>
auto inside(Body&& body) {
  require_python();
  Inside here;
  try {
    return body();
  } catch (py::error_already_set& error) {
    rethrow(error);
  }
}

// What a script printed must not wait for an end of Python that never comes.
struct Flush {
  ~Flush() {
    PyObject* stream = python_is_ours() ? PySys_GetObject("stdout") : nullptr;
    if (stream == nullptr || stream == Py_None) return;
    Py_XDECREF(PyObject_CallMethod(stream, "flush", nullptr));
    PyErr_Clear();
  }
};

py::tuple wrap(std::vector<at::Tensor>&& tensors) {
  py::tuple wrapped(tensors.size());
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    PyObject* one = THPVariable_Wrap(std::move(tensors[index]));
    if (one == nullptr) throw py::error_already_set();
    PyTuple_SET_ITEM(wrapped.ptr(), static_cast<Py_ssize_t>(index), one);
  }
  return wrapped;
}

class Opened : public PythonScript {
 public:
  Opened(py::object script, std::optional<std::vector<std::string>> inputs)
      : script_(script.release()),
        forward_(script_.attr("forward").cast<py::object>().release()),
        inputs_(std::move(inputs)) {}

  ~Opened() override {
    // A Python that is gone has taken its objects along; one of before a fork has locks of its own.
    if (!Py_IsInitialized()) return;
    try {
      inside([&] {
        script_.attr("close")();
        forward_.dec_ref();
        script_.dec_ref();
      });
    } catch (const std::exception&) {
    }
  }

  std::optional<std::vector<std::string>> inputs() const override { return inputs_; }

  std::vector<at::Tensor> forward(std::vector<at::Tensor> inputs) override {
    at::AutoGradMode gradients(false);
    return inside([&] {
      Flush flush;
      const auto listed = py::reinterpret_steal<py::list>(
          PyObject_CallObject(forward_.ptr(), wrap(std::move(inputs)).ptr()));
      if (!listed) throw py::error_already_set();
      std::vector<at::Tensor> results;
      for (const py::handle& each : listed) {
        // A tensor that Python has not seen can go without Python's lock.
        results.push_back(THPVariable_Unpack(each.ptr()).detach());
      }
      return results;
    });
  }

  Step train(std::vector<at::Tensor> inputs, std::vector<at::Tensor> targets) override {
    at::AutoGradMode gradients(true);
    return inside([&] {
      Flush flush;
      py::tuple step = script_.attr("train")(wrap(std::move(inputs)), wrap(std::move(targets)));
      return Step{step[0].cast<bool>(), step[1].cast<double>()};
    });
  }

  void save(const std::string& path) override {
    inside([&] {
      Flush flush;
      script_.attr("save")(path_text(path));
    });
  }

 private:
  py::handle script_, forward_;
  std::optional<std::vector<std::string>> inputs_;
};

// A second torch in one process would crash it.
void require_torch(const std::string& python, const std::string& libraries) {
  const std::string whose = python_is_ours() ? "the Python " + python : "this process's Python";
  const std::string cure =
      say(python_is_ours() ? ": set TORCHSPAN_PYTHON to" : ": start the program by",
          " the Python that has this one.");
  py::object spec = py::module_::import("importlib.util").attr("find_spec")("torch");
  if (spec.is_none()) {
    fail(TSPAN_ERROR_MODEL_FILE, whose, " has no torch, and this program uses that in ", libraries,
         cure);
  }
  py::list folders(spec.attr("submodule_search_locations"));
  const auto folder = std::filesystem::path(utf8(folders[0])) / "lib";
  if (std::filesystem::weakly_canonical(folder) == libraries) return;
  fail(TSPAN_ERROR_MODEL_FILE, whose, " has the torch in ", folder.string(),
       ", and this program uses that in ", libraries, cure);
}

// Run the module of rules, which this library carries.
py::object load_rules() {
  constexpr const char* name = "torchspan_native_script";
  auto module = py::reinterpret_steal<py::object>(PyModule_New(name));
  py::dict names = module.attr("__dict__");
  names["__file__"] = name;
  names["__builtins__"] = py::module_::import("builtins");
  auto code =
      py::reinterpret_steal<py::object>(Py_CompileString(script_rules, name, Py_file_input));
  if (!code) throw py::error_already_set();
  auto done =
      py::reinterpret_steal<py::object>(PyEval_EvalCode(code.ptr(), names.ptr(), names.ptr()));
  if (!done) throw py::error_already_set();
  return module;
}

void prepare(const std::string& python, const std::string& libraries) {
  if (rules != nullptr) return;
  try {
    require_torch(python, libraries);
    py::object loaded = load_rules();
    // Another thread may have been quicker while this one waited for Python's lock.
    if (rules == nullptr) rules = new py::object(std::move(loaded));
  } catch (py::error_already_set& error) {
    const std::string why = error.what();
    fail(TSPAN_ERROR_MODEL_FILE, "the Python ", python,
         " cannot import torch: ", why.substr(0, why.find('\n')), ".");
  }
}

std::shared_ptr<PythonScript> open(const std::string& python, const std::string& libraries,
                                   const std::string& path, const std::string& device) {
  start_python(python);
  require_python();
  Inside here;
  prepare(python, libraries);
  return inside([&]() -> std::shared_ptr<PythonScript> {
    Flush flush;
    auto file = py::module_::import("pathlib").attr("Path")(path_text(path));
    py::object names = rules->attr("read_inputs")(file);
    std::optional<std::vector<std::string>> inputs;
    if (!names.is_none()) {
      inputs.emplace();
      for (const py::handle& each : names) inputs->push_back(utf8(each));
    }
    py::object home = py::module_::import("torch").attr("device")(device);
    py::object script = rules->attr("Script")(file, home);
    return std::make_shared<Opened>(std::move(script), std::move(inputs));
  });
}

}  // namespace
}  // namespace torchspan

extern "C" __attribute__((visibility("default"))) const torchspan::PythonLibrary torchspan_python;
const torchspan::PythonLibrary torchspan_python = {torchspan::rules_version, torchspan::open};
