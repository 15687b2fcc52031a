# SPDX-License-Identifier: MIT
import json
import shutil
import zipfile
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import torchspan
from torchspan import Build, Description, ModelFileError, ModelFileNotFoundError, TensorSpec
from torchspan._model_file._description import FORMAT


def rewritten(source, target, change):
    """A copy of a model file whose description went through ``change``."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("extra/torchspan.json"):
                data = change(data)
            new.writestr(name, data)
    return target


def test_a_script_model_tells_the_names_of_its_inputs(model_file):
    told = torchspan.describe(model_file("script"))
    assert told.kind == "jit"
    assert told.inputs == (TensorSpec("input"),)
    assert told.outputs is None and told.builds == () and told.torch is None


def test_a_torchscript_file_of_several_inputs(tmp_path):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, first: torch.Tensor, second: torch.Tensor):
            return self.inner(first), second

    torchspan.save(Two(), tmp_path / "two.pt", (torch.rand(1, 3), torch.rand(1, 2)))
    names = [each.name for each in torchspan.describe(tmp_path / "two.pt").inputs]
    assert names == ["first", "second"]


def test_a_file_of_plain_pytorch_is_known_but_says_nothing(tmp_path):
    program = torch.export.export(nn.Linear(2, 2), (torch.rand(3, 2),))
    torch.export.save(program, tmp_path / "plain.pt2")
    told = torchspan.describe(tmp_path / "plain.pt2")
    assert (told.kind, told.inputs, told.torchspan) == ("pt2", None, None)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def forward(x, y):\n    return x\n", ["x", "y"]),
        ("def forward(*all):\n    return all\n", None),
        ("def forward(x, y=None):\n    return x\n", None),
        ("def ftn_pytorch_forward(inputs):\n    return inputs[0]\n", None),
    ],
)
def test_a_script_tells_its_arguments(tmp_path, text, names):
    path = tmp_path / "model.py"
    path.write_text(text)
    told = torchspan.describe(path)
    assert told.kind == "script"
    assert (told.inputs and [each.name for each in told.inputs]) == names


def test_a_missing_file(tmp_path):
    for name in ("no.pt2", "no.pt", "no.py"):
        with pytest.raises(ModelFileNotFoundError, match=f"there is no model file .*{name}"):
            torchspan.describe(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        torchspan.describe(tmp_path / "no.pt2")


def test_a_folder(tmp_path):
    with pytest.raises(ModelFileError, match="is a folder"):
        torchspan.describe(tmp_path)


@pytest.mark.parametrize("part", [0.01, 0.5, 0.999])
def test_a_truncated_file(tmp_path, mlp_file, part):
    whole = mlp_file.read_bytes()
    path = tmp_path / "cut.pt2"
    path.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(ModelFileError, match="truncated: it begins as a model file"):
        torchspan.describe(path)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("net.pt2", b"", "is no model file"),
        ("net.pt2", b"\x89HDF\r\n", "is no model file"),
        ("net.py", b"def forward(x:", "is no Python script"),
        ("net.py", b"\xff\xfe", "is no Python script"),
        ("net.py", b"x = 1\n", "defines no function forward"),
    ],
)
def test_files_of_another_kind(tmp_path, name, data, words):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ModelFileError, match=words):
        torchspan.describe(tmp_path / name)


def test_an_archive_of_another_kind(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.pt2", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(ModelFileError, match="an archive of another kind"):
        torchspan.describe(tmp_path / "a.pt2")


def test_weights_are_no_model(tmp_path):
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "weights.pt")
    with pytest.raises(ModelFileError, match="holds weights, no model.*--weights"):
        torchspan.describe(tmp_path / "weights.pt")


def test_a_build_without_a_program_is_refused(tmp_path, mlp_file):
    path = tmp_path / "bare.pt2"
    with zipfile.ZipFile(mlp_file) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            if "/models/" not in name and "torchspan" not in name:
                new.writestr(name, old.read(name))
    with pytest.raises(ModelFileError, match="holds no exported program"):
        torchspan.describe(path)


def test_a_newer_format_names_the_cure(tmp_path, mlp_file):
    def raised(data):
        values = json.loads(data)
        return json.dumps({**values, "format": FORMAT + 1, "torchspan": "9.0", "inputs": "new"})

    path = rewritten(mlp_file, tmp_path / "new.pt2", raised)
    with pytest.raises(ModelFileError, match=r"format 2, written by torchspan 9.0.*newer"):
        torchspan.describe(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": "x"}', "\xff"])
def test_a_description_that_makes_no_sense(tmp_path, mlp_file, text):
    path = rewritten(mlp_file, tmp_path / "odd.pt2", lambda data: text.encode("latin-1"))
    with pytest.raises(ModelFileError, match="damaged"):
        torchspan.describe(path)


def test_a_flipped_byte_in_the_description_is_found(tmp_path, mlp_file):
    data = bytearray(mlp_file.read_bytes())
    data[data.rindex(b'"rows_independent"') + 3] ^= 1
    (tmp_path / "bad.pt2").write_bytes(data)
    with pytest.raises(ModelFileError, match="damaged: its record"):
        torchspan.describe(tmp_path / "bad.pt2")


def test_a_damaged_table_of_contents_is_an_error_of_ours(tmp_path, mlp_file):
    whole = mlp_file.read_bytes()
    with zipfile.ZipFile(mlp_file) as archive:
        start = archive.start_dir
    path = tmp_path / "bad.pt2"
    random = Random(5)
    told = set()
    for _ in range(400):
        data = bytearray(whole)
        data[random.randrange(start, len(data))] = random.randrange(256)
        path.write_bytes(data)
        try:
            torchspan.describe(path)
        except ModelFileError as error:
            told.add(str(error).split(":")[0].split(" ", 1)[1])
    assert "is damaged" in told


def test_nothing_but_the_table_of_contents_and_the_description_is_read(tmp_path, mlp_file):
    """Weights that cannot be read do no harm: describing never looks at them."""
    data = bytearray(mlp_file.read_bytes())
    with zipfile.ZipFile(mlp_file) as archive:
        for each in archive.infolist():
            if "weights/weight_" in each.filename:
                start = each.header_offset + 30
                data[start : start + each.file_size] = bytes(each.file_size)
    (tmp_path / "hollow.pt2").write_bytes(data)
    assert torchspan.describe(tmp_path / "hollow.pt2").inputs[0].name == "x"


NAMES = st.text(min_size=1, max_size=12)
SIZES = st.one_of(st.integers(0, 2**40), NAMES, st.none())
SPECS = st.builds(
    TensorSpec,
    NAMES,
    st.sampled_from(["float32", "int64", "complex64"]),
    st.lists(SIZES, max_size=5).map(tuple),
    st.booleans(),
)
BUILDS = st.builds(
    Build,
    *(NAMES,) * 5,
    st.integers(0, 9),
    st.none() | st.integers(1, 9),
    NAMES,
    NAMES,
    st.none() | st.floats(0, 1),
)


@given(
    inputs=st.lists(SPECS, max_size=3).map(tuple),
    builds=st.lists(BUILDS, max_size=3).map(tuple),
    limits=st.dictionaries(NAMES, st.tuples(st.integers(0, 9), st.none() | st.integers(9, 99))),
)
def test_json_there_and_back(tmp_path_factory, inputs, builds, limits):
    path = tmp_path_factory.getbasetemp() / "a.pt2"
    told = Description(
        path=path,
        kind="pt2",
        inputs=inputs,
        outputs=inputs,
        builds=builds,
        torch="2.13.0",
        torchspan="0.1.0",
        format=FORMAT,
        rows_independent=True,
        row_bytes=5,
        returns="tuple",
        limits=limits,
    )
    assert Description.from_json(told.to_json(), path) == told
    json.dumps(told.to_dict())


def test_copies_keep_their_description(tmp_path, mlp_file):
    shutil.copy(mlp_file, tmp_path / "copy.pt2")
    ours, theirs = torchspan.describe(mlp_file), torchspan.describe(tmp_path / "copy.pt2")
    assert ours.builds == theirs.builds and theirs.path == tmp_path / "copy.pt2"
