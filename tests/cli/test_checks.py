# SPDX-License-Identifier: MIT
from dataclasses import replace

import pytest

from torchspan.cli import _checks
from torchspan.cli._checks import find_all, mpi_family
from torchspan.cli._facts import Facts, FolderFacts, MpiFacts, RankFacts, Tool
from torchspan.cli.devices import DeviceFacts

GIB = 1024**3
ROLES = ("C++ compiler", "Fortran compiler", "CMake", "Ninja", "mpiexec")
GPU = DeviceFacts(
    *("cuda:0", "cuda", 0, "cuda:0", False, False),
    *("Example GPU", 30 * GIB, 40 * GIB, "9.0", 0, 1),
)
OPENMPI = "mpiexec (OpenRTE) 4.1.4"
SOUND = Facts(
    torch="2.13.0+cpu",
    torch_range="<2.16,>=2.11",
    ranks=(RankFacts(host="a", host_cores=4, cores=(0, 1, 2, 3), threads=4),),
    tools=tuple(Tool(role, f"/opt/{role}", "1.0") for role in ROLES),
    mpi=MpiFacts(OPENMPI, "Open MPI v4.1.4, package: x"),
    openmp=("/opt/torch/lib/libgomp.so.1",),
    system_openmp="libgomp.so.1",
    cache=FolderFacts("/cache", 9 * GIB, 1000),
    temporary=FolderFacts("/scratch", 9 * GIB, 1000),
)


def ranks(number, **keywords):
    values = {"host": "a", "host_cores": 8, "cores": (0, 1), "threads": 2, "launcher": "openmpi"}
    values.update(keywords)
    return tuple(
        RankFacts(rank=rank, size=number, local_rank=rank, **values) for rank in range(number)
    )


def only(**changes):
    """The one finding of a machine that is sound but for these facts."""
    found = find_all(replace(SOUND, **changes))
    assert len(found) == 1, found
    assert found[0].text.endswith(".")
    return found[0].level, found[0].text


def test_a_sound_machine_has_no_findings():
    assert find_all(SOUND) == []


def test_every_check_is_in_the_list():
    written = {value for name, value in vars(_checks).items() if name.startswith("check_")}
    assert written == set(_checks.CHECKS)


def test_errors_come_first():
    found = find_all(replace(SOUND, pretended=("2 cuda",), troubles=("RANK='x' is no number.",)))
    assert [each.level for each in found] == ["error", "warning"]


def test_an_error_met_while_looking_is_an_error():
    assert only(troubles=("the variables of torchrun are half set.",)) == (
        "error",
        "the variables of torchrun are half set.",
    )


def test_a_gpu_that_does_not_answer_is_an_error():
    level, text = only(devices=(replace(GPU, trouble="CUDA error: device busy"),))
    assert level == "error"
    assert "cuda:0 does not answer: CUDA error: device busy" in text


@pytest.mark.parametrize("version", ["2.10.2", "2.16.0", "3.0", "1.13.1+cu117"])
def test_a_torch_outside_the_range_is_a_warning(version):
    level, text = only(torch=version)
    assert level == "warning"
    assert f"torch {version} is outside the supported versions <2.16,>=2.11" in text


@pytest.mark.parametrize("version", ["2.11.0", "2.15.9", "2.13.0+cu130", "2.12.0a0+git1"])
def test_a_torch_inside_the_range_is_none(version):
    assert find_all(replace(SOUND, torch=version)) == []


def test_gpus_that_torch_does_not_see():
    level, text = only(drivers=("/dev/nvidia0",))
    assert level == "warning"
    assert "this machine has GPUs (/dev/nvidia0), but torch, built for CPU, sees none" in text
    assert find_all(replace(SOUND, drivers=("/dev/nvidia0",), devices=(GPU,))) == []


def test_pretended_devices_are_said():
    level, text = only(pretended=("2 cuda", "1 xpu"))
    assert level == "warning"
    assert text.startswith("2 cuda and 1 xpu pretended")


def test_ranks_bound_to_one_core_each():
    bound = tuple(replace(each, cores=(each.rank,), threads=1) for each in ranks(2))
    level, text = only(ranks=bound)
    assert level == "warning"
    assert "on a ranks 0, 1 may use one core of 8" in text
    assert "mpiexec --bind-to none" in text


def test_one_core_each_is_right_where_there_are_no_more():
    bound = tuple(replace(each, cores=(each.rank,), threads=1) for each in ranks(2, host_cores=2))
    assert find_all(replace(SOUND, ranks=bound)) == []


def test_one_thread_although_there_are_cores_names_the_variable():
    level, text = only(ranks=ranks(1, threads=1, omp_num_threads="1"))
    assert level == "warning"
    assert "on a this process would use one thread of 2 cores because OMP_NUM_THREADS=1." in text
    apart = tuple(
        replace(each, cores=(each.rank * 2, each.rank * 2 + 1)) for each in ranks(5, threads=1)
    )
    assert only(ranks=apart)[1].startswith("on a 5 ranks would use one thread of 2 cores. torchrun")


def test_one_thread_a_rank_is_right_where_the_ranks_fill_the_cores():
    assert find_all(replace(SOUND, ranks=ranks(2, threads=1, omp_num_threads="1"))) == []


def test_more_threads_than_cores():
    level, text = only(ranks=ranks(2))
    assert level == "warning"
    assert "on a ranks 0, 1 would use 4 threads on 2 cores" in text
    assert "set OMP_NUM_THREADS=1." in text
    level, text = only(ranks=ranks(3))
    assert "OMP_NUM_THREADS" not in text


def test_hosts_are_judged_apart():
    first, second = ranks(2)
    assert find_all(replace(SOUND, ranks=(first, replace(second, host="b")))) == []


def test_more_ranks_than_gpus():
    sharing = tuple(
        replace(each, physical=str(each.rank % 2), cores=(each.rank,), threads=1, host_cores=4)
        for each in ranks(4)
    )
    level, text = only(ranks=sharing)
    assert level == "warning"
    assert "on a ranks 0, 1, 2, 3 share 2 GPUs" in text
    single = tuple(replace(each, physical=str(each.rank)) for each in sharing)
    assert find_all(replace(SOUND, ranks=single)) == []


@pytest.mark.parametrize(
    ("role", "level"), list(zip(ROLES, ("warning", *["note"] * 4), strict=True))
)
def test_missing_tools(role, level):
    tools = tuple(Tool(each) if each == role else Tool(each, "/opt/x") for each in ROLES)
    found = only(tools=tools)
    assert found[0] == level
    assert found[1].startswith(f"there is no {role}: ")


@pytest.mark.parametrize(
    ("launcher", "library", "named"),
    [
        ("HYDRA build details:\n Version: 4.0.2", "Open MPI v4.1.4", "the MPICH family"),
        (OPENMPI, "MPICH Version:      4.1.2", "Open MPI"),
        ("mpiexec (Open MPI) 5.0.3", "Intel(R) MPI Library 2021.10", "Open MPI"),
    ],
)
def test_an_mpiexec_of_another_mpi_than_mpi4py(launcher, library, named):
    level, text = only(mpi=MpiFacts(launcher, library))
    assert level == "warning"
    assert f"mpiexec belongs to {named} but mpi4py" in text


@pytest.mark.parametrize(
    ("launcher", "library"),
    [
        ("Intel(R) MPI Library for Linux* OS, Version 2021.10", "MPICH Version: 4.1.2"),
        ("mpiexec version 1.2.12 PALS", "MPI VERSION    : CRAY MPICH version 8.1.29"),
        ("something new 1.0", "Open MPI v4.1.4"),
        (OPENMPI, None),
        (None, "Open MPI v4.1.4"),
    ],
)
def test_an_mpi_that_fits_or_is_not_known_is_no_finding(launcher, library):
    assert find_all(replace(SOUND, mpi=MpiFacts(launcher, library))) == []


def test_an_mpi4py_that_does_not_load():
    level, text = only(mpi=MpiFacts(OPENMPI, None, "ImportError: libmpi.so.40: cannot open."))
    assert level == "warning"
    assert "mpi4py is installed but does not load: ImportError: libmpi.so.40" in text


def test_mpi_families():
    assert mpi_family("MVAPICH2 Version: 2.3.7") == "the MPICH family"
    assert mpi_family("slurm 23.11") is None


def test_two_openmp_runtimes_in_this_process():
    level, text = only(openmp=("/a/libgomp.so.1", "/b/libiomp5.so"))
    assert level == "warning"
    assert "2 OpenMP runtimes (libgomp.so.1, libiomp5.so)" in text


def test_a_second_openmp_runtime_that_a_program_would_bring():
    level, text = only(openmp=("/a/libgomp-98b21ff3.so.1.0.0",))
    assert level == "note"
    assert "brings libgomp.so.1 as well" in text
    assert find_all(replace(SOUND, openmp=("/a/libomp.dylib",))) == []


def test_a_cache_that_cannot_be_used():
    assert only(cache=FolderFacts(trouble="the cache folder /c cannot be made: x."))[0] == "error"
    level, text = only(cache=FolderFacts("/c", 9 * GIB, 1000, executable=False))
    assert (level, "mounted noexec" in text, "TORCHSPAN_CACHE" in text) == ("error", True, True)


@pytest.mark.parametrize(
    ("free", "entries", "level", "text"),
    [
        (0, 1000, "error", "is full"),
        (9 * GIB, 0, "error", "is full"),
        (GIB // 2, None, "warning", "has 512.0 MiB left"),
    ],
)
@pytest.mark.parametrize(
    ("what", "variable"), [("cache", "TORCHSPAN_CACHE"), ("temporary", "TMPDIR")]
)
def test_folders_that_are_full(what, variable, free, entries, level, text):
    found = only(**{what: FolderFacts("/f", free, entries)})
    assert found[0] == level
    assert f"the {what} folder /f {text}" in found[1]
    assert variable in found[1]


def test_a_temporary_folder_that_may_not_be_written():
    folder = FolderFacts("/t", trouble="/t may not be written by this user.")
    assert only(temporary=folder) == ("error", "/t may not be written by this user.")
