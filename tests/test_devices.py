# SPDX-License-Identifier: MIT
import os
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchspan import Device, DeviceError, Placement, PlacementError, _accelerator, devices
from torchspan._devices import VIRTUAL_CPUS, pretended, usable_cores, visible_accelerators

CPU = Device("cpu", 0, "cpu")
MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
REAL = _accelerator.kind()
RANKED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


@pytest.fixture(autouse=True)
def no_accelerator(monkeypatch):
    """Every test here says itself which accelerators there are."""
    set_machine(monkeypatch, None, 0)
    for name in (*MASKS, *RANKED):
        monkeypatch.delenv(name, raising=False)
    for kind in ("CUDA", "XPU", "MPS"):
        monkeypatch.delenv(f"TORCHSPAN_PRETEND_{kind}", raising=False)


def set_machine(monkeypatch, kind, count):
    monkeypatch.setattr(_accelerator, "kind", lambda: kind)
    monkeypatch.setattr(_accelerator, "count", lambda: count)


def names(found):
    return [str(device) for device in found]


def backings(found):
    return [device.backing for device in found]


def error_of(spec, **keywords):
    with pytest.raises(DeviceError) as caught:
        devices(spec, **keywords)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_without_an_accelerator_all_is_the_cpu():
    assert devices() == devices("all") == devices("cpu") == devices("cpu:0") == [CPU]
    assert not CPU.virtual
    assert CPU.torch == torch.device("cpu")


def test_with_accelerators_all_and_the_kind_are_every_one_of_them(monkeypatch):
    set_machine(monkeypatch, "cuda", 3)
    assert names(devices("all")) == names(devices("cuda")) == ["cuda:0", "cuda:1", "cuda:2"]
    assert backings(devices("all")) == ["cuda:0", "cuda:1", "cuda:2"]
    assert not any(device.virtual for device in devices("all"))
    assert devices("cuda:2")[0].torch == torch.device("cuda", 2)


@pytest.mark.parametrize("kind", ["xpu", "mps"])
def test_the_other_kinds_go_the_same_way(monkeypatch, kind):
    set_machine(monkeypatch, kind, 1)
    assert devices("all") == devices(kind) == devices(f"{kind}:0") == [Device(kind, 0, f"{kind}:0")]


def test_virtual_cpus_share_the_one_cpu():
    first, second = devices("cpu:0,cpu:1")
    assert (str(second), second.backing, second.virtual) == ("cpu:1", "cpu", True)
    assert (str(first), first.virtual) == ("cpu:0", False)


def test_a_device_may_be_listed_twice(monkeypatch):
    set_machine(monkeypatch, "cuda", 2)
    assert names(devices("cuda:1,cuda:1, cpu,cpu:0")) == ["cuda:1", "cuda:1", "cpu:0", "cpu:0"]
    assert names(devices("cuda,cuda:0")) == ["cuda:0", "cuda:1", "cuda:0"]


def test_case_and_spaces_do_not_matter(monkeypatch):
    set_machine(monkeypatch, "cuda", 2)
    assert devices("  CUDA:0 ,\tCpu ") == devices("cuda:0,cpu")
    assert devices(" ALL ") == devices("all")


def test_sequences_of_texts_devices_and_torch_devices(monkeypatch):
    set_machine(monkeypatch, "cuda", 2)
    given_ = ["cuda:1,cpu:3", Device("cpu", 1, "cpu"), torch.device("cuda", 0), torch.device("cpu")]
    assert names(devices(given_)) == ["cuda:1", "cpu:3", "cpu:1", "cuda:0", "cpu:0"]
    assert devices(iter(given_)) == devices(tuple(given_)) == devices(given_)


def test_a_torch_device_is_always_one_device(monkeypatch):
    set_machine(monkeypatch, "cuda", 3)
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 2)
    assert names(devices(torch.device("cuda"))) == ["cuda:2"]
    assert names(devices(torch.device("cuda", 1))) == ["cuda:1"]
    assert names(devices(torch.device("cpu", 4))) == ["cpu:4"]


def test_a_torch_device_without_an_index_can_be_pretended(monkeypatch):
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "2")
    assert devices(torch.device("cuda")) == [Device("cuda", 0, "cpu")]


def test_rocm_names_mean_cuda_under_rocm_only(monkeypatch):
    set_machine(monkeypatch, "cuda", 2)
    assert "'rocm' is of no known kind" in error_of("rocm")
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert names(devices("rocm:1,hip:0")) == ["cuda:1", "cuda:0"]
    assert names(devices("hip")) == ["cuda:0", "cuda:1"]


@given(st.lists(st.integers(0, VIRTUAL_CPUS - 1), min_size=1, max_size=8), st.data())
def test_any_list_of_cpus_keeps_its_order_and_repeats(indices, data):
    pads = st.sampled_from(["", " ", "\t", "  "])
    text = ",".join(f"{data.draw(pads)}cpu:{index}{data.draw(pads)}" for index in indices)
    found = devices(text)
    assert [device.index for device in found] == indices
    assert devices(names(found)) == devices(found) == found


@given(st.text(max_size=12))
def test_any_text_is_devices_or_a_device_error_in_one_line(text):
    try:
        found = devices(text)
    except DeviceError as error:
        assert "\n" not in str(error)
    else:
        assert found
        assert all(device.kind == "cpu" for device in found)


def test_an_unknown_kind_lists_the_known_ones_and_what_is_there(monkeypatch):
    set_machine(monkeypatch, "xpu", 1)
    message = error_of("tpu:0")
    assert "'tpu:0'" in message
    assert "cpu, cuda, xpu, mps, 'all' and 'rank'" in message
    assert "This process sees xpu:0, cpu:0" in message
    assert "'meta:0' is of no known kind" in error_of(torch.device("meta"))


def test_an_absent_index_lists_what_is_there(monkeypatch):
    set_machine(monkeypatch, "cuda", 2)
    message = error_of("cuda:0,cuda:2")
    assert "device 'cuda:2' is not there" in message
    assert "This process sees cuda:0, cuda:1, cpu:0 to cpu:63 (virtual)" in message
    assert "TORCHSPAN_PRETEND_CUDA=3" in message


def test_an_absent_kind_names_the_mask_and_the_way_to_pretend(monkeypatch):
    assert "TORCHSPAN_PRETEND_XPU=2" in error_of("xpu")
    assert "TORCHSPAN_PRETEND_MPS=1" in error_of("mps")
    assert "PRETEND" not in error_of("mps:1")
    assert "PRETEND" not in error_of("cuda:64")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "device 'cuda' is not there with CUDA_VISIBLE_DEVICES=''" in error_of("cuda")
    monkeypatch.setenv("ZE_AFFINITY_MASK", "0.0")
    assert "with ZE_AFFINITY_MASK='0.0'" in error_of("xpu:1")


def test_a_virtual_cpu_beyond_the_last_is_not_there():
    assert "virtual CPUs go from cpu:0 to cpu:63" in error_of("cpu:64")
    assert "'cpu:999999' is not there" in error_of("cpu:999999")


@pytest.mark.parametrize(
    "text",
    ["", " ", ",", "cpu,", ",cpu", "cpu,,cpu", "cpu:", ":0", "cpu:-1", "cpu:1.0", "cpu:01", "cpu 0",
     "cpu:0:1", "cpu;cpu", "0", "cuda0", "all:0", "rank:1", "cpu:0-3", "ｃpu", "cpu:٣"],
)  # fmt: skip
def test_nonsense_is_named_with_examples_of_what_to_write(text):
    message = error_of(text)
    assert repr(text) in message or "is of no known kind" in message
    assert "This process sees cpu:0" in message


@pytest.mark.parametrize("empty", [[], (), iter([])])
def test_an_empty_list_is_an_error(empty):
    assert "the list of devices is empty" in error_of(empty)


@pytest.mark.parametrize("wrong", [3, None, 1.5, [0], [["cpu"]], b"cpu"])
def test_what_is_no_spec_at_all_is_an_error(wrong):
    assert "is no device; give a text such as 'cuda:0'" in error_of(wrong)


@pytest.mark.parametrize("local_rank", range(5))
def test_rank_is_the_local_rank_modulo_what_is_visible(monkeypatch, local_rank):
    place = Placement(rank=local_rank + 8, size=16, local_rank=local_rank)
    assert devices("rank", place) == [CPU]
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "2")
    assert names(devices("rank", place)) == [f"cuda:{local_rank % 2}"]


def test_rank_is_right_when_the_scheduler_shows_each_rank_a_single_gpu(monkeypatch):
    set_machine(monkeypatch, "cuda", 1)
    place = Placement(rank=3, size=4, local_rank=3, local_size=4)
    assert names(devices("rank", place)) == ["cuda:0"]


def test_rank_reads_the_launcher_when_no_placement_is_given(monkeypatch):
    set_machine(monkeypatch, "cuda", 4)
    assert names(devices("rank")) == ["cuda:0"]
    for name, value in zip(RANKED, ("6", "8", "2", "4"), strict=True):
        monkeypatch.setenv(name, value)
    assert names(devices("rank")) == ["cuda:2"]
    monkeypatch.delenv("WORLD_SIZE")
    with pytest.raises(PlacementError, match="WORLD_SIZE is missing"):
        devices("rank")


def test_nothing_pretends_without_its_variable():
    assert pretended() == {}
    assert visible_accelerators() == []


def test_pretended_devices_are_virtual_cpus(monkeypatch):
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "2")
    monkeypatch.setenv("TORCHSPAN_PRETEND_XPU", " 1 ")
    monkeypatch.setenv("TORCHSPAN_PRETEND_MPS", "1")
    assert pretended() == {"cuda": 2, "xpu": 1, "mps": 1}
    assert names(devices("all")) == ["cuda:0", "cuda:1", "xpu:0", "mps:0"]
    assert set(backings(devices("all"))) == {"cpu"}
    assert all(device.virtual for device in devices("all"))
    assert names(visible_accelerators("xpu")) == ["xpu:0"]


def test_a_real_gpu_stands_behind_pretended_ones_of_its_kind(monkeypatch):
    set_machine(monkeypatch, "cuda", 1)
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "2")
    monkeypatch.setenv("TORCHSPAN_PRETEND_XPU", "1")
    found = devices("cuda,xpu")
    assert backings(found) == ["cuda:0", "cuda:0", "cpu"]
    assert [device.virtual for device in found] == [False, True, True]


@pytest.mark.parametrize("text", ["", " ", "0"])
def test_an_empty_count_or_zero_pretends_nothing(monkeypatch, text):
    set_machine(monkeypatch, "cuda", 1)
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", text)
    assert pretended() == {}
    assert names(devices("cuda")) == ["cuda:0"]


@pytest.mark.parametrize(
    ("kind", "text", "most"),
    [("CUDA", "two", 64), ("XPU", "-1", 64), ("CUDA", "65", 64), ("MPS", "2", 1), ("XPU", "²", 64)],
)
def test_a_count_that_makes_no_sense_is_an_error(monkeypatch, kind, text, most):
    monkeypatch.setenv(f"TORCHSPAN_PRETEND_{kind}", text)
    message = error_of("all")
    assert (
        f"TORCHSPAN_PRETEND_{kind}={text!r} is not a number of devices from 0 to {most}" in message
    )


def test_the_cores_are_those_of_the_affinity_mask():
    assert usable_cores() == len(os.sched_getaffinity(0))
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{one}])\n"
    code += "from torchspan._devices import usable_cores; print(usable_cores())"
    assert run_python(code).stdout == "1\n"


def run_python(code, **environ):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TORCHSPAN_PRETEND_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def test_an_empty_mask_means_no_gpu():
    masks = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ZE_AFFINITY_MASK": ""}
    code = "import torchspan; print(*torchspan.devices('all'))"
    done = run_python(code, **masks)
    assert (done.stdout, done.stderr) == ("cpu:0\n", "")


def test_pretending_is_said_once_on_stderr():
    code = "import torchspan\nfor i in range(3): print(*torchspan.devices('all'))"
    done = run_python(code, TORCHSPAN_PRETEND_CUDA="2", CUDA_VISIBLE_DEVICES="")
    assert done.stdout == "cuda:0 cuda:1\n" * 3
    assert done.stderr == (
        "torchspan: pretending 2 cuda devices on virtual CPUs, because TORCHSPAN_PRETEND_CUDA is "
        "set.\n"
    )


@pytest.mark.gpu
@pytest.mark.skipif(REAL != "cuda", reason="needs a CUDA GPU")
def test_the_mask_of_a_real_gpu_is_respected():
    code = "import torchspan; print(*torchspan.devices('all'))"
    assert run_python(code, CUDA_VISIBLE_DEVICES="0").stdout == "cuda:0\n"
    assert run_python(code, CUDA_VISIBLE_DEVICES="").stdout == "cpu:0\n"
