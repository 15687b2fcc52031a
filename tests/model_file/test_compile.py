# SPDX-License-Identifier: MIT
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
import torch
from torch import nn

import torchspan
from tests.zoo import ZOO
from torchspan import ArgumentError, ModelFileError
from torchspan._model_file import _capability
from torchspan._model_file._capability import cpu_level, find_level, fits, generating_for
from torchspan._model_file._unpacked import unpack_build

CPU = torchspan.devices("cpu")[0]
LEVEL = cpu_level().name


@pytest.fixture(scope="module")
def extended(tmp_path_factory, mlp_file):
    """The MLP's file with a build for lesser CPUs added."""
    path = tmp_path_factory.mktemp("extended") / "net.pt2"
    shutil.copy(mlp_file, path)
    torchspan.compile(path, cpu="baseline")
    return path


def test_a_build_is_added_and_all_others_stay(extended, mlp_file, mlp):
    before, after = torchspan.describe(mlp_file), torchspan.describe(extended)
    assert after.builds[:-1] == before.builds
    assert (after.builds[-1].name, after.builds[-1].capability) == ("cpu-baseline", "baseline")
    x = torch.rand(3, 64)
    with torch.no_grad():
        torch.testing.assert_close(torch.export.load(extended).module()(x), mlp(x))
        plain = torch._inductor.aoti_load_package(str(extended))
        torch.testing.assert_close(plain(x), mlp(x))


def test_adding_it_again_replaces_it(extended):
    before = torchspan.describe(extended)
    after = torchspan.compile(extended, cpu="baseline")
    assert [each.name for each in after.builds] == [each.name for each in before.builds]
    with zipfile.ZipFile(extended) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert [path.name for path in extended.parent.iterdir()] == ["net.pt2"]


def test_a_newer_build_for_the_same_takes_the_name_of_the_old(extended, tmp_path):
    path = tmp_path / "net.pt2"
    shutil.copy(extended, path)
    after = torchspan.compile(path, tuned=False)
    before = torchspan.describe(extended)
    assert sorted(b.name for b in after.builds) == sorted(b.name for b in before.builds)
    assert next(b for b in after.builds if b.name == "model").folder == "data/aotinductor/model"


def test_only_builds_that_will_run_are_unpacked(extended, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSPAN_CACHE", str(tmp_path / "cache"))
    with torchspan.load(extended, devices="cpu:0,cpu:1") as net:
        net(torch.rand(2, 64))
    wanted = {
        each.digest
        for each in torchspan.describe(extended).builds
        if LEVEL == "baseline" or each.capability != "baseline"
    }
    assert len(wanted) >= 2
    assert set(os.listdir(tmp_path / "cache")) == wanted


RUN = """
import sys, torch, torchspan
net = torchspan.load(sys.argv[1], devices="cpu")
print(torch.backends.cpu.get_cpu_capability(), float(net(torch.ones(2, 64)).sum()))
"""


@pytest.mark.skipif(LEVEL == "baseline", reason="this CPU has no level above baseline")
def test_a_cpu_below_a_build_gets_one_that_it_can_run(extended, mlp):
    """ATEN_CPU_CAPABILITY makes torch, and so torchspan, take this CPU for a lesser one."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(extended)],
        env={**os.environ, "ATEN_CPU_CAPABILITY": "default", "TORCHSPAN_LOG": "info"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "runs build cpu-baseline (baseline)" in done.stderr
    name, total = done.stdout.split()
    assert name == "DEFAULT"
    assert float(total) == pytest.approx(float(mlp(torch.ones(2, 64)).detach().sum()), rel=1e-4)


@pytest.mark.skipif(LEVEL == "baseline", reason="this CPU has no level above baseline")
def test_a_cpu_below_every_build_is_said_and_gets_one_compiled(mlp_file):
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(mlp_file)],
        env={**os.environ, "ATEN_CPU_CAPABILITY": "default"},
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert f"holds builds for cpu with {LEVEL}, which cpu:0 (baseline) cannot run" in done.stderr
    assert "compiling one" in done.stderr and "torchspan compile" in done.stderr


def test_levels(monkeypatch):
    monkeypatch.setattr(_capability.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert find_level(None).name == "avx2"
    assert [fits(name, CPU) for name in ("baseline", "avx2", "avx512", "neon")] == [
        True,
        True,
        False,
        False,
    ]
    with pytest.raises(ArgumentError, match="reaches avx2.*Build on a machine with avx512"):
        find_level("avx512")
    with pytest.raises(ArgumentError, match="cpu 'neon' is no level.*avx512, avx2, baseline"):
        find_level("neon")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names x86 levels")
def test_inductor_generates_for_the_level_and_not_for_this_cpu():
    from torch._inductor import cpp_builder, cpu_vec_isa

    before = cpp_builder._get_optimization_cflags("g++")
    with generating_for(find_level("baseline")):
        flags, _ = cpp_builder._get_optimization_cflags("g++")
        assert "march=x86-64" in flags and "march=native" not in flags
        assert not cpu_vec_isa.pick_vec_isa()
    with generating_for(find_level(None)):
        assert "avx512_vnni" not in str(cpu_vec_isa.pick_vec_isa())
    assert cpp_builder._get_optimization_cflags("g++") == before


def test_neon_is_the_level_of_arm(monkeypatch):
    monkeypatch.setattr(_capability.platform, "machine", lambda: "aarch64")
    assert find_level(None).name == "neon"
    assert fits("neon", CPU) and fits("baseline", CPU) and not fits("avx2", CPU)


def test_kernels_fit_their_own_architecture_upwards(monkeypatch):
    gpu = torchspan.Device("cuda", 0, "cuda:0")
    monkeypatch.setattr(_capability._accelerator, "capability", lambda index: "9.0")
    wanted = {"9.0": True, "9.1": False, "8.0": False, "10.0": False}
    assert {name: fits(name, gpu) for name in wanted} == wanted
    monkeypatch.setattr(_capability._accelerator, "capability", lambda index: "8.9")
    assert fits("8.0", gpu) and not fits("9.0", gpu)


def test_files_of_others_are_not_changed(tmp_path):
    program = torch.export.export(nn.Linear(2, 2), (torch.rand(3, 2),))
    torch.export.save(program, tmp_path / "plain.pt2")
    with pytest.raises(ArgumentError, match="was not saved as .pt2 by torchspan"):
        torchspan.compile(tmp_path / "plain.pt2")


def test_a_precision_that_is_not_known(mlp_file):
    with pytest.raises(ArgumentError, match="precision 'int8' is not known"):
        torchspan.compile(mlp_file, precision="int8")


@pytest.mark.parametrize("sizes", [(0,), (-1,)])
def test_sizes_that_are_no_batches(mlp_file, sizes):
    with pytest.raises(ArgumentError, match="give whole sizes of at least 1"):
        torchspan.compile(mlp_file, static_batches=sizes)


def test_a_flipped_byte_in_a_build_is_found(tmp_path, mlp_file, monkeypatch):
    monkeypatch.setenv("TORCHSPAN_CACHE", str(tmp_path / "cache"))
    data = bytearray(mlp_file.read_bytes())
    with zipfile.ZipFile(mlp_file) as archive:
        library = next(i for i in archive.infolist() if i.filename.endswith("wrapper.so"))
    data[library.header_offset + library.file_size // 2] ^= 1
    (tmp_path / "bad.pt2").write_bytes(data)
    with pytest.raises(ModelFileError, match="is damaged"):
        torchspan.load(tmp_path / "bad.pt2", devices="cpu")
    damaged = torchspan.describe(mlp_file).builds[0].digest
    assert not [name for name in os.listdir(tmp_path / "cache") if name.startswith(damaged)]


def test_files_that_are_not_those_that_were_saved(tmp_path, mlp_file, monkeypatch):
    """Sums can be made right for wrong content; the digest cannot."""
    monkeypatch.setenv("TORCHSPAN_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "swapped.pt2"
    with zipfile.ZipFile(mlp_file) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            extra = b"\n" if name.endswith("wrapper.cpp") else b""
            new.writestr(name, old.read(name) + extra)
    told = torchspan.describe(path)
    with (
        torchspan._model_file.Archive(path) as archive,
        pytest.raises(ModelFileError, match="are not those that were saved"),
    ):
        unpack_build(archive, told.builds[0])


def test_a_cached_build_that_was_cut_is_unpacked_again(tmp_path, mlp_file, monkeypatch, mlp):
    monkeypatch.setenv("TORCHSPAN_CACHE", str(tmp_path / "cache"))
    torchspan.load(mlp_file, devices="cpu").close()
    for library in (tmp_path / "cache").rglob("*.so"):
        # A new file: the one that this process has open must not change under it.
        library.unlink()
        library.write_bytes(b"cut")
    net = torchspan.load(mlp_file, devices="cpu")
    x = torch.rand(2, 64)
    torch.testing.assert_close(net(x), mlp(x))


def test_a_static_build_answers_for_its_batch_alone(mlp_file):
    from torchspan._runners import Form
    from torchspan._runners._compiled import CompiledRunner

    told = torchspan.describe(mlp_file)
    ran = []
    builds = [
        (build, lambda inputs, name=build.name: ran.append(name) or [])
        for build in sorted(told.builds, key=lambda each: each.max_batch is None)
    ]
    runner = CompiledRunner(builds, Form("tuple"), "float32")
    for rows in (1, 2, 0, None, 1):
        runner([], rows)
    special = f"cpu-{LEVEL}-b1"
    assert ran == [special, "model", "model", "model", special]


def test_the_zoo_is_the_same_every_time():
    first, second = ZOO["mlp"].make(), ZOO["mlp"].make()
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True)
    )
