# SPDX-License-Identifier: MIT
"""Python scripts as models of a C program: results, training, errors, threads, and the end."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import torchspan
from tests.native.conftest import NATIVE
from torchspan.cli.build import NO_SCRIPTS

SCRIPTS = {
    "double.py": """
        def forward(x):
            if x[0, 0] < 0:
                raise ValueError(f"{int(x[0, 0])} is below 0")
            return 2 * x
        """,
    "learning.py": """
        import torch
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 3)
        optimizer = torch.optim.SGD(net.parameters(), 0.5)
        def forward(x):
            assert not torch.is_grad_enabled()
            return net(x)
        def train(x, target):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(net(x), target)
            loss.backward()
            optimizer.step()
            return loss < 1e-3, loss
        def save(path):
            torch.save(net.state_dict(), path)
        """,
    "fortran_names.py": """
        import torch
        steps = []
        def ftn_pytorch_forward(inputs):
            return inputs[0] * len(inputs) * 2
        def ftn_pytorch_train(inputs, target):
            steps.append(len(inputs))
            return len(steps) == 3, float((inputs[0] - target).sum())
        def ftn_pytorch_save(filename):
            open(filename, "w").write(str(steps))
        """,
    "keeping.py": """
        kept = []
        def forward(x):
            kept.append(x)
            if len(kept) == 1:
                return x
            x += 10
            return kept[-2].clone()
        """,
    "waiting.py": """
        import time
        def forward(x):
            time.sleep(100)
        """,
}
BROKEN = {
    "syntax.py": "def forward(x:\n    pass\n",
    "bytes.py": b"\xff\xfe",
    "nothing.py": "x = 1\n",
    "importing.py": "import nothing_like_it\ndef forward(x):\n    return x\n",
    "leaving.py": "import sys\nsys.exit('enough')\ndef forward(x):\n    return x\n",
    "raising.py": "def deep(x):\n    raise KeyError('öhm')\ndef forward(x):\n    return deep(x)\n",
    "exiting.py": "import sys\ndef forward(x):\n    sys.exit(3)\n",
    "typed.py": "def forward(x):\n    return 'text'\ndef train(x, t):\n    return 'text'\n",
    "listed.py": "def forward(x):\n    return [x, 7]\n",
    "shaped.py": "def forward(x):\n    return x[0]\ndef train(x, t):\n    return x\n",
    "double_precision.py": "def forward(x):\n    return x.double()\n",
    "two.py": "def forward(x):\n    return x, x\n",
    "arguments.py": "def forward(x, y):\n    return x\n",
    "optional.py": "def forward(x, *rest):\n    return x.missing\n",
    "memory.py": "def forward(x):\n    raise MemoryError\n",
}
# What each says: of loading, or else of running, training and saving.
ERRORS = {
    "missing.py": {"load": (5, "there is no model file")},
    "syntax.py": {"load": (5, "is no Python script: '(' was never closed (syntax.py, line 1)")},
    "bytes.py": {"load": (5, "is no Python script")},
    "nothing.py": {"load": (5, "defines no function forward (or ftn_pytorch_forward)")},
    "importing.py": {
        "load": (5, "failed while it was loaded: ModuleNotFoundError: No module named"),
    },
    "leaving.py": {"load": (5, "failed while it was loaded: SystemExit: enough")},
    "raising.py": {
        "run": (6, "the model failed on cpu:0: KeyError: 'öhm'\\nTraceback (most recent call"),
        "train": (6, "training failed on cpu:0: "),
        "save": (6, "defines no function save (or ftn_pytorch_save). Add 'def save(path): ...'."),
    },
    "exiting.py": {"run": (6, "SystemExit: 3")},
    "typed.py": {
        "run": (6, "the model returned a str; it must return a tensor, or a tuple, list or dict"),
        "train": (6, "returned a str; it must return (completed, loss), a truth and a number"),
    },
    "listed.py": {"run": (6, "the model returned a list of Tensor, int; it must return a tensor")},
    "shaped.py": {
        "run": (2, "output 0 has dtype float32 and shape (4, 3); the result has float32 and (3,)"),
        "train": (6, "returned a Tensor; it must return (completed, loss)"),
    },
    "double_precision.py": {"run": (2, "the result has float64 and (4, 3)")},
    "two.py": {"run": (2, "1 output was given; this model gives 2.")},
    "arguments.py": {"run": (2, "1 input was given; this model takes 2: x; y.")},
    "optional.py": {"run": (6, "AttributeError: 'Tensor' object has no attribute 'missing'")},
    "memory.py": {"run": (7, "cpu:0 has too little memory for this call: MemoryError")},
    "double.py": {"run": (0, "")},
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")
    for name, text in {**SCRIPTS, **BROKEN}.items():
        write(folder / name, text)
    return folder


def write(path, text):
    if isinstance(text, bytes):
        path.write_bytes(text)
        return path
    margin = len(text.lstrip("\n")) - len(text.lstrip())
    lines = [line[margin:] for line in text.splitlines()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def forward(run_c, folder, script, inputs, expected, devices="cpu", mode="run", environ=None):
    """Run a script on float32 arrays from C and compare; gives its description."""
    words = []
    for role, arrays in (("x", inputs), ("y", expected)):
        for index, array in enumerate(arrays):
            path = folder / f"{role}{index}"
            path.write_bytes(array.tobytes() if role == "x" else b"")
            words.append(f"{path}:float32:{'x'.join(map(str, array.shape))}")
        words.append("--")
    (line,) = run_c("run", script, devices, mode, *words[:-1], environ=environ)
    assert line.startswith("0 "), line
    for index, array in enumerate(expected):
        given = np.fromfile(folder / f"y{index}", np.float32).reshape(array.shape)
        np.testing.assert_allclose(given, array, rtol=1e-6)
    return json.loads(line.split(" ", 3)[3])


def draw(*shape):
    return np.random.default_rng(len(shape)).random(shape, dtype=np.float32)


@pytest.mark.parametrize(("devices", "mode"), [("cpu", "run"), ("cpu:0,cpu:1", "submit")])
def test_forward(run_c, tmp_path, devices, mode):
    text = "def forward(a, b):\n    return {'sum': a + b, 'b': b, 'most': (a - b).abs()}\n"
    script = write(tmp_path / "model.py", text)
    a, b = draw(5, 2), draw(5, 2) / 3
    told = forward(run_c, tmp_path, script, [a, b], [a + b, b, abs(a - b)], devices, mode)
    assert told["kind"] == "script"
    assert [each["name"] for each in told["inputs"]] == ["a", "b"]
    assert [each["name"] for each in told["inputs"]] == [
        spec.name for spec in torchspan.describe(script).inputs
    ]


def test_names_that_cannot_be_told(run_c, scripts, tmp_path):
    x = draw(2, 3)
    told = forward(run_c, tmp_path, scripts / "fortran_names.py", [x, x, x], [6 * x])
    assert (
        told["inputs"] is None and torchspan.describe(scripts / "fortran_names.py").inputs is None
    )


@pytest.mark.parametrize("devices", ["cpu:0,cpu:1", "cuda"])
def test_each_device_runs_the_script_for_itself(run_c, tmp_path, devices):
    text = "import os\nprint_to = os.environ['SEEN']\nopen(print_to, 'a').write('once\\n')\n"
    text += "def forward(x):\n    return x + 1\n"
    script = write(tmp_path / "model.py", text)
    environ = {"SEEN": str(tmp_path / "seen"), "TORCHSPAN_PRETEND_CUDA": "2"}
    x = draw(4, 3)
    forward(run_c, tmp_path, script, [x], [x + 1], devices, environ=environ)
    assert (tmp_path / "seen").read_text() == "once\n" * 2


def test_training_and_saving(run_c, scripts, tmp_path):
    target = tmp_path / "weights.pt"
    ((steps, loss, y),) = [run_c("script", "learn", scripts / "learning.py", target)[0].split()]
    weights = torch.load(target)
    x = torch.arange(12.0).reshape(4, 3) / 12
    given = x @ weights["weight"].T + weights["bias"]
    assert int(steps) > 1 and float(loss) < 1e-3
    assert float(y) == pytest.approx(float(given[2, 0]), abs=0.01)
    ((steps, loss, _),) = [
        run_c("script", "learn", scripts / "fortran_names.py", target)[0].split()
    ]
    assert (int(steps), target.read_text()) == (3, "[1, 1, 1]")
    assert float(loss) == pytest.approx(float((x - 2 * x).sum()))


def test_every_error(run_c, scripts):
    seen = set()
    for line in run_c("script", "attempt", "cpu", *(scripts / name for name in ERRORS)):
        name, what, code, message = line.split("|", 3)
        if what not in ERRORS[name]:
            assert (what == "load" and code == "0") or what in ("train", "save"), line
            continue
        expected, words = ERRORS[name][what]
        assert (int(code), words in message) == (expected, True), line
        seen.add((name, what))
    assert seen == {(name, what) for name, whats in ERRORS.items() for what in whats}


def test_a_traceback_begins_in_the_script(run_c, scripts):
    lines = run_c("script", "attempt", "cpu", scripts / "raising.py")
    message = next(line for line in lines if "|run|" in line).split("|", 3)[3]
    first, head, where, *rest = message.split("\\n")
    assert first == "the model failed on cpu:0: KeyError: 'öhm'"
    assert head == "Traceback (most recent call last):"
    assert where == f'  File "{scripts / "raising.py"}", line 4, in forward'
    assert rest[-1] == "KeyError: 'öhm'"


def test_only_scripts_on_one_device_train_and_save(run_c, scripts, model_file):
    lines = run_c("script", "attempt", "cpu:0,cpu:1", scripts / "learning.py", model_file("script"))
    for line in lines:
        name, what, code, message = line.split("|", 3)
        if what in ("train", "save"):
            words = "is open on 2 devices" if name == "learning.py" else "only a Python script has"
            assert code == "2" and words in message, line


def test_what_a_script_prints_comes_with_the_call(c_program, scripts, tmp_path):
    script = write(tmp_path / "model.py", "def forward(x):\n    print('here')\n    return x\n")
    command = [c_program("script"), "attempt", "cpu", script]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert said.splitlines()[0] == "here"


def test_two_scripts_of_one_name_from_the_threads_of_openmp(c_program, tmp_path):
    paths = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = f"FACTOR = {number}\ndef forward(x):\n    return FACTOR * x\n"
        paths.append(write(folder / "model.py", text))
    program = c_program("teams", "-fopenmp")
    done = subprocess.run([program, *paths], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_paths_and_siblings(run_c, tmp_path):
    folder = tmp_path / "ünï côdé's"
    folder.mkdir()
    write(folder / "beside_the_script.py", "FACTOR = 5.0\n")
    text = "def forward(x):\n    from beside_the_script import FACTOR\n    return x * FACTOR\n"
    script = write(folder / "módel.py", text)
    x = draw(2, 3)
    forward(run_c, tmp_path, os.path.relpath(script), [x], [5 * x])
    forward(run_c, tmp_path, script, [x], [5 * x], environ={"LC_ALL": "C"})


def test_what_a_script_keeps_of_its_inputs_stays(run_c, scripts):
    # The program's memory is changed by the script in place, so it was not copied before.
    said = run_c("script", "keep", scripts / "keeping.py")
    assert said == ["0 0", "0 11", "11 12", "12"]


def test_ten_threads_at_once(run_c, scripts):
    assert run_c("script", "threads", scripts / "double.py") == ["right"]


def test_memory_stays_flat(run_c, scripts):
    (line,) = run_c("script", "calls", scripts / "double.py", scripts / "raising.py", 10_000)
    assert int(line.split()[0]) < 1 << 20


def test_signals_are_the_program_s(run_c, scripts):
    assert run_c("script", "interrupt", scripts / "double.py") == ["1 1"]


def test_after_a_fork(run_c, scripts):
    run, load, close, status = run_c("script", "fork", scripts / "double.py")
    for line in (run, load):
        assert "|6|Python was started before this process was forked" in line
    assert (close.split("|")[2], status) == ("0", "0")


def test_the_program_may_end_while_a_script_runs(run_c, scripts):
    begin = time.monotonic()
    assert run_c("script", "leave", scripts / "waiting.py") == ["left"]
    assert time.monotonic() - begin < 60


def failed_load(run_c, script, **environ):
    (line,) = run_c("script", "attempt", "cpu", script, environ=environ)
    assert "|load|5|" in line
    return line


def test_another_python(run_c, scripts, tmp_path):
    script = scripts / "double.py"
    said = failed_load(run_c, script, TORCHSPAN_PYTHON="/no/such/python")
    assert "/no/such/python is no Python that runs here" in said
    own = run_c("script", "attempt", "cpu", script, environ={"TORCHSPAN_PYTHON": sys.executable})
    assert "|run|0|" in own[1]
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True, timeout=60)
    said = failed_load(run_c, script, TORCHSPAN_PYTHON=str(bare / "bin" / "python"))
    assert "bin/python has no torch, and this program uses that in" in said
    other = bare / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages" / "torch"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    said = failed_load(run_c, script, TORCHSPAN_PYTHON=str(bare / "bin" / "python"))
    assert f"has the torch in {other}/lib, and this program uses that in" in said


def fake_python(path, *answers):
    lines = "\n".join(f"echo '{each}'" for each in answers)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_without_a_shared_library(run_c, scripts, tmp_path):
    python = fake_python(tmp_path / "python", "/x/python", "3.11", "", "", "")
    said = failed_load(run_c, scripts / "double.py", TORCHSPAN_PYTHON=python)
    assert "has no shared library libpython" in said
    assert "PYTHON_CONFIGURE_OPTS=--enable-shared" in said


def test_a_python_whose_library_is_none(run_c, scripts, tmp_path):
    (tmp_path / "libpython.so").write_text("nothing")
    python = fake_python(tmp_path / "python", "/x/python", "3.11", tmp_path / "libpython.so")
    said = failed_load(run_c, scripts / "double.py", TORCHSPAN_PYTHON=python)
    assert "Python's library cannot be opened: " in said


def test_without_the_library_beside(c_program, native_build, scripts, tmp_path):
    for library in native_build.glob("libtorchspan.so*"):
        shutil.copy(library, tmp_path, follow_symlinks=False)
    command = [c_program("script"), "attempt", "cpu", scripts / "double.py"]
    # The path that the program was linked with comes first otherwise.
    environ = {**os.environ, "LD_PRELOAD": str(tmp_path / "libtorchspan.so.1")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert f"scripts need {tmp_path}/libtorchspan_python.so, which cannot be opened" in done.stdout
    assert "or build both again." in done.stdout


HOST = """
import ctypes, sys, threading
import torch
library = ctypes.CDLL(sys.argv[1])
library.tspan_last_error.restype = ctypes.c_char_p
model, loss, done = ctypes.c_void_p(), ctypes.c_double(), ctypes.c_int()
def call(name, *given):
    if getattr(library, name)(*given) != 0:
        raise RuntimeError(library.tspan_last_error().decode())
call("tspan_model_load", sys.argv[2].encode(), b"cpu", ctypes.byref(model))
result = []
def save():
    call("tspan_model_save", model, sys.argv[3].encode())
    result.append(True)
threads = [threading.Thread(target=save) for _ in range(4)]
[each.start() for each in threads]
[each.join() for each in threads]
print(len(result), "torch" in sys.modules)
"""


def test_in_a_process_that_is_python_s_own(native_build, scripts, tmp_path):
    library = native_build / "libtorchspan.so"
    command = [sys.executable, "-c", HOST, library, scripts / "learning.py", tmp_path / "w.pt"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("4 True\n", "", 0)
    assert set(torch.load(tmp_path / "w.pt")) == {"weight", "bias"}


def test_the_library_itself_knows_no_python(native_build):
    needed = subprocess.run(
        ["readelf", "--dynamic", native_build / "libtorchspan.so"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = [line for line in needed.splitlines() if "(NEEDED)" in line]
    assert any("libtorch_cpu" in each for each in names)
    assert not any("python" in each for each in names)


def configure(folder, *options):
    """Configure the library and give the reason that it has for running no scripts."""
    command = ["cmake", "-S", NATIVE, "-B", folder, "-DCMAKE_Fortran_COMPILER=NOTFOUND", *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert NO_SCRIPTS in done.stdout
    text = (folder / "embedded.hpp").read_text(encoding="utf-8")
    return text.split('no_python = R"text(')[1].split(')text"')[0]


def test_a_build_without_headers_says_why(tmp_path):
    torch_folder = os.path.realpath(torch.__path__[0])
    python = fake_python(tmp_path / "python", "/x/python", "3.11", "", "", torch_folder)
    options = f"-DTORCHSPAN_PYTHON={python}", f"-DTORCHSPAN_LIBTORCH={torch_folder}"
    why = configure(tmp_path / "build", *options)
    assert "/x/python had no Python.h when torchspan was built. Install it (Debian" in why
    assert "apt-get install python3.11-dev" in why


def test_a_build_without_python_says_why(tmp_path):
    libtorch = tmp_path / "libtorch"
    libtorch.mkdir()
    for name in ("lib", "include"):
        (libtorch / name).symlink_to(Path(torch.__path__[0]) / name)
    why = configure(tmp_path / "build", f"-DTORCHSPAN_LIBTORCH={libtorch}")
    assert f"no Python has the torch in {libtorch}, which torchspan was built with." in why
