# SPDX-License-Identifier: MIT
import pytest

from torchspan import _accelerator
from torchspan.cli import devices as command
from torchspan.cli._terminal import format_bytes


@pytest.fixture
def two_gpus(monkeypatch):
    gibibyte = 1024**3
    monkeypatch.setattr(_accelerator, "kind", lambda: "cuda")
    monkeypatch.setattr(_accelerator, "count", lambda: 2)
    monkeypatch.setattr(_accelerator, "memory", lambda index: (30 * gibibyte, 40 * gibibyte))
    monkeypatch.setattr(_accelerator, "name", lambda index: f"Example GPU {index}")
    monkeypatch.setattr(_accelerator, "capability", lambda index: "9.0")


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(_accelerator, "kind", lambda: None)
    monkeypatch.setattr(_accelerator, "count", lambda: 0)


def columns(done):
    """The cells of each line; columns stand two or more spaces apart."""
    assert done.status == 0
    return [[cell for cell in line.split("  ") if cell.strip()] for line in done.out.splitlines()]


def test_the_cpu_alone(torchspan_command, no_gpu):
    heads, row = columns(torchspan_command("devices"))
    assert [head.strip() for head in heads] == list(command.HEADS)
    assert row[0] == "cpu:0"
    assert row[1].strip() == "itself"
    assert " of " in row[3]
    assert row[-1].strip() == "every"


def test_gpus_come_with_memory_capability_and_ranks(torchspan_command, two_gpus):
    _, first, second, cpu = columns(torchspan_command("devices"))
    cells = [cell.strip() for cell in first]
    assert cells == ["cuda:0", "itself", "Example GPU 0", "30.0 GiB of 40.0 GiB", "9.0",
                     "0, 2, 4 ..."]  # fmt: skip
    assert second[-1].strip() == "1, 3, 5 ..."
    assert cpu[-1].strip() == "none"


def test_virtual_and_pretended_devices_are_marked(torchspan_command, no_gpu, monkeypatch):
    _, first, second = columns(torchspan_command("devices", "cpu:0,cpu:1"))
    assert first[1].strip() == "itself"
    assert second[1].strip() == "virtual, on cpu"
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "2")
    done = torchspan_command("devices", "cuda")
    assert [row[1].strip() for row in columns(done)[1:]] == ["pretended, on cpu"] * 2
    assert "pretending 2 cuda devices" in done.err


def test_json_is_pure_and_complete(torchspan_command, two_gpus, monkeypatch):
    monkeypatch.setenv("TORCHSPAN_PRETEND_XPU", "1")
    done = torchspan_command("devices", "cuda:1,xpu:0,cpu", "--json")
    first, second, third = done.json["devices"]
    assert (first["device"], first["memory_total"], first["capability"]) == (
        "cuda:1",
        40 << 30,
        "9.0",
    )
    assert (first["first_rank"], first["rank_step"], first["virtual"]) == (1, 3, False)
    assert (second["pretended"], second["virtual"], second["backing"]) == (True, True, "cpu")
    assert (third["first_rank"], third["memory_total"] > 0) == (None, True)
    assert done.json["cores"] >= 1


def test_a_device_that_does_not_answer_is_shown_with_its_reason(
    torchspan_command, two_gpus, monkeypatch
):
    def fail(index):
        raise RuntimeError("CUDA error: device busy\nmore lines")

    monkeypatch.setattr(_accelerator, "memory", fail)
    done = torchspan_command("devices", "cuda:0")
    assert done.status == 0
    assert "does not answer" in done.out
    assert "CUDA error: device busy  " in done.out
    assert "more lines" not in done.out


def test_memory_that_no_driver_tells_is_unknown(torchspan_command, two_gpus, monkeypatch):
    monkeypatch.setattr(_accelerator, "memory", lambda index: None)
    assert columns(torchspan_command("devices", "cuda:0"))[1][3].strip() == "unknown"


def test_a_spec_that_makes_no_sense_is_one_line_and_status_1(torchspan_command):
    done = torchspan_command("devices", "tpu")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("torchspan: error: device 'tpu' is of no known kind")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (3 << 40, "3.0 TiB")],
)
def test_bytes_read_well(number, text):
    assert format_bytes(number) == text
