# SPDX-License-Identifier: MIT
import json
import zipfile
from collections import OrderedDict

import pytest
import torch
from torch import Tensor, nn

import torchspan
from tests.zoo import ZOO, seeded
from torchspan import ArgumentError, BuildError, DeviceError, ModelFileError
from torchspan._model_file import _compile, _program, _save
from torchspan._model_file._example import name_example, pick_rows


def opened_by_torch(path):
    with torch.no_grad():
        yield torch.export.load(path).module()
        yield torch._inductor.aoti_load_package(str(path))


def test_plain_pytorch_opens_the_file(mlp_file, mlp):
    x = torch.rand(5, 64)
    for model in opened_by_torch(mlp_file):
        torch.testing.assert_close(model(x), mlp(x))


def test_the_description_says_what_the_file_holds(mlp_file):
    told = torchspan.describe(mlp_file)
    assert [str(each) for each in told.inputs] == ["x: float32 (batch, 64)"]
    assert [str(each) for each in told.outputs] == ["y: float32 (batch, 64)"]
    assert told.rows_independent and told.returns == "tensor"
    assert told.row_bytes == 4 * (256 + 256)
    assert told.torch == torch.__version__.split("+")[0]
    assert [(b.name, b.min_batch, b.max_batch) for b in told.builds] == [
        ("model", 0, None),
        (f"cpu-{told.builds[0].capability}-b1", 1, 1),
    ]
    assert all(b.error is not None and b.error < 1e-5 for b in told.builds)


def test_a_file_for_other_cpus_is_found_by_plain_pytorch_too(tmp_path):
    told = torchspan.save(
        ZOO["mixing"].make(), tmp_path / "net.pt2", ZOO["mixing"].example(), cpu="baseline"
    )
    assert [(b.name, b.capability) for b in told.builds] == [("model", "baseline")]
    x = torch.rand(3, 3, dtype=torch.float64)
    for model in opened_by_torch(tmp_path / "net.pt2"):
        torch.testing.assert_close(model(x), x - x.mean(0))


def test_several_inputs_outputs_and_named_sizes(model_file):
    told = torchspan.describe(model_file("columns"))
    assert [str(each) for each in told.inputs] == [
        "field: float32 (batch, 2, ny, 6)",
        "forcing: float32 (batch, 3)",
        "grid: float32 (6)",
    ]
    assert [each.batched for each in told.inputs] == [True, True, False]
    assert [str(each) for each in told.outputs] == [
        "tendency: float32 (batch, 4, ny, 6)",
        "score: float32 (batch, 3)",
        "kind: int64 (batch)",
    ]
    assert told.returns == "dict"


def test_rows_that_depend_on_each_other_are_noticed(model_file):
    assert torchspan.describe(model_file("mixing")).rows_independent is False


def test_the_json_is_the_documented_one(mlp_file):
    with zipfile.ZipFile(mlp_file) as archive:
        values = json.loads(archive.read("mlp/extra/torchspan.json"))
    assert next(iter(values)) == "format" and values["format"] == 1
    assert values["inputs"] == [
        {"name": "x", "dtype": "float32", "shape": ["batch", 64], "batched": True}
    ]
    folders = [build["folder"] for build in values["builds"]]
    assert folders[0] == "data/aotinductor/model"
    assert folders[1].startswith("data/torchspan/")


def test_the_model_is_left_as_it_was(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.9)).train()
    model[0].eval()
    torchspan.save(model, tmp_path / "net.pt", torch.rand(2, 3))
    assert model.training and model[1].training and not model[0].training
    x = torch.rand(4, 3)
    net = torchspan.load(tmp_path / "net.pt", devices="cpu")
    torch.testing.assert_close(net(x), model[0](x))


@pytest.mark.parametrize("rows", [1, 2, 16])
def test_the_example_gets_a_prime_number_of_rows_found_nowhere_else(rows):
    model = nn.Linear(7, 11)
    example = name_example(model, torch.arange(rows * 7.0).reshape(rows, 7))
    assert pick_rows(example, model) == 13
    tiled = example.with_rows(13).tensors["input"]
    assert tiled.shape == (13, 7) and torch.equal(tiled[12], tiled[12 % rows])


class Plain(nn.Module):
    def __init__(self, result=None):
        super().__init__()
        self.result = result

    def forward(self, x: Tensor, y: Tensor):
        return x + y if self.result is None else self.result(x, y)


PAIR = (torch.rand(2, 3), torch.rand(2, 3))


@pytest.mark.parametrize(
    ("example", "options", "words"),
    [
        ((torch.rand(2, 3),), {}, "does not fit Plain.forward"),
        ({"x": PAIR[0], "z": PAIR[1]}, {}, "does not fit Plain.forward"),
        ((PAIR[0], 3.0), {}, "example input 'y' is a float"),
        ((PAIR[0], torch.rand(4, 3)), {}, "differ in their number of rows: 'x' has 2, 'y' has 4"),
        ((PAIR[0], torch.tensor(1.0)), {}, r"'y' has shape \(\), which has no rows"),
        ((PAIR[0], torch.rand(0, 3)), {}, "has no rows"),
        (PAIR, {"shared": ("grid",)}, "shared names 'grid', but the inputs are 'x', 'y'"),
        (PAIR, {"dynamic": {"z": {1: "n"}}}, "dynamic names 'z'"),
        (PAIR, {"dynamic": {"x": {2: "n"}}}, "dimensions 1 to 1 can be named"),
        (PAIR, {"dynamic": {"x": {0: "n"}}}, r"dynamic has \{0: 'n'\}.*0 is the batch"),
        (PAIR, {"dynamic": {"x": {-1: "n"}}}, "give numbers and names"),
        (PAIR, {"dynamic": {"x": [1]}}, r"dynamic has \[1\] for 'x'"),
        (PAIR, {"dynamic": {"x": {1: "batch"}}}, "'batch', which is the name of the first one"),
        (PAIR, {"static_batches": 3}, "static_batches has 3; give whole sizes"),
        (PAIR, {"static_batches": (2.5,)}, "give whole sizes"),
        (PAIR, {"format": "onnx"}, "format 'onnx' is not known"),
        (PAIR, {"static_batches": (0,)}, "static_batches has"),
        (PAIR, {"static_batches": (1,), "dynamic_batch": False}, "static_batches has"),
    ],
)
def test_an_example_that_does_not_fit_is_refused(tmp_path, example, options, words):
    with pytest.raises(ArgumentError, match=words):
        torchspan.save(Plain(), tmp_path / "net.pt2", example, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda x, y: (x, 3), "output 1 of the model is"),
        (lambda x, y: {"a": (x, y)}, "inside tuples or dicts inside others"),
    ],
)
def test_results_that_are_not_tensors_are_refused(tmp_path, result, words):
    with pytest.raises(ArgumentError, match=words):
        torchspan.save(Plain(result), tmp_path / "net.pt2", PAIR)


def test_names_must_be_as_many_as_there_are(tmp_path):
    with pytest.raises(ArgumentError, match=r"input_names has \['a'\]; this model has 2 inputs"):
        torchspan.save(Plain(), tmp_path / "net.pt2", PAIR, input_names=("a",))
    with pytest.raises(ArgumentError, match="output_names has"):
        torchspan.save(Plain(), tmp_path / "net.pt2", PAIR, output_names=("a", "b"))


def test_ordered_dicts_keep_their_keys():
    class Ordered(nn.Module):
        def forward(self, x: Tensor):
            return OrderedDict(sum=x + 1, difference=x - 1)

    program, shown = _save._export(Ordered(), name_example(Ordered(), PAIR[0]))
    _, outputs, returns = _program.describe_program(program, shown, None, None)
    assert returns == "dict" and [each.name for each in outputs] == ["sum", "difference"]


def test_torchscript_cannot_store_everything(tmp_path):
    with pytest.raises(ArgumentError, match="static_batches, shared cannot be stored"):
        torchspan.save(Plain(), tmp_path / "net.pt", PAIR, static_batches=(1,), shared=("y",))


def test_a_path_of_no_known_ending_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"end the path in .pt2"):
        torchspan.save(Plain(), tmp_path / "net.onnx", PAIR)


def test_something_that_is_no_module_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="model is a function"):
        torchspan.save(seeded, tmp_path / "net.pt2", PAIR)


def test_a_device_that_is_not_there_is_refused_before_anything_is_built(tmp_path):
    with pytest.raises(DeviceError, match="cuda"):
        torchspan.save(Plain(), tmp_path / "net.pt2", PAIR, devices=("cpu", "cuda"))


def test_a_model_of_one_batch_size_says_so(tmp_path):
    class Fixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(2, -1).sum(1) if x.shape[0] == 7 else x

    with pytest.raises(BuildError, match="dynamic_batch=False"):
        torchspan.save(Fixed(), tmp_path / "net.pt2", torch.rand(7, 4))


def test_a_model_that_changes_its_buffers_is_refused(tmp_path):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.seen += 1
            return x + self.seen

    with pytest.raises(ArgumentError, match="changes its buffers seen"):
        torchspan.save(Counting(), tmp_path / "net.pt2", torch.rand(2, 3))


def test_a_model_that_changes_its_inputs_is_refused(tmp_path):
    class InPlace(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.add_(1)

    with pytest.raises(ArgumentError, match="changes its inputs x in place"):
        torchspan.save(InPlace(), tmp_path / "net.pt2", torch.rand(2, 3))


def test_a_model_that_draws_random_numbers_is_refused(tmp_path):
    class Noisy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.rand_like(x)

    with pytest.raises(BuildError, match="another result at every call"):
        torchspan.save(Noisy(), tmp_path / "net.pt2", torch.rand(2, 3))


def test_a_build_that_gives_wrong_results_is_never_written(tmp_path, monkeypatch, model_file):
    right = _compile.open_build

    def wrong(folder, device, runners):
        run = right(folder, device, runners)
        # Right for few rows, wrong for many: as torch's own mistakes are.
        return lambda inputs: [y + 0.01 * (len(y) > 16) for y in run(inputs)]

    monkeypatch.setattr(_compile, "open_build", wrong)
    entry = ZOO["mixing"]
    with pytest.raises(BuildError, match="differs from eager by .* at batch 33"):
        torchspan.save(entry.make(), tmp_path / "net.pt2", entry.example())
    assert not list(tmp_path.iterdir())


def test_a_missing_compiler_is_named(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found in cpp.cxx")

    monkeypatch.setattr(torch._inductor, "aot_compile", fail)
    with pytest.raises(BuildError, match="apt-get install g\\+\\+"):
        torchspan.save(Plain(), tmp_path / "net.pt2", PAIR)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelFileError, match="there is no folder"):
        torchspan.save(nn.Linear(2, 2), tmp_path / "no" / "net.pt", torch.rand(1, 2))


def test_the_steps_are_told(tmp_path, monkeypatch):
    told = []

    def stop(*arguments):
        raise BuildError("enough")

    monkeypatch.setattr(_save, "build_checked", stop)
    with pytest.raises(BuildError, match="enough"):
        torchspan.save(Plain(), tmp_path / "net.pt2", PAIR, progress=told.append)
    assert told == ["exporting Plain"]
