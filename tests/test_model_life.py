# SPDX-License-Identifier: MIT
"""A model fails, is closed, dropped, forked, called very often."""

import gc
import resource
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import torch
from torch import nn

import torchspan
from torchspan import ArgumentError, DeviceMemoryError, ModelError

DEVICES = ("cpu", "cpu:0,cpu:1")


@pytest.mark.parametrize("devices", DEVICES)
def test_an_exception_inside_the_model(devices):
    class Failing(nn.Module):
        def forward(self, x):
            if x.shape[0] > 2 or float(x.sum()) < 0:
                raise KeyError("nothing like it")
            return x

    net = torchspan.load(Failing(), devices=devices)
    with pytest.raises(ModelError, match=r"on cpu:[01]: KeyError: 'nothing like it'") as caught:
        net(torch.rand(9, 2))
    assert isinstance(caught.value.__cause__, KeyError)
    assert net(torch.rand(2, 2)).shape == (2, 2)
    with pytest.raises(ModelError):
        net.submit(-torch.rand(2, 2)).result(60)


def test_results_that_are_no_tensors():
    class Odd(nn.Module):
        def forward(self, x):
            return x, 3

    with pytest.raises(ModelError, match="returned a tuple of Tensor, int"):
        torchspan.load(Odd(), devices="cpu")(torch.rand(2, 2))


def test_too_little_memory():
    class Huge(nn.Module):
        def forward(self, x):
            return x.new_empty(1 << 60)

    net = torchspan.load(Huge(), devices="cpu")
    with pytest.raises(DeviceMemoryError, match="cpu:0 has too little memory for 2 rows"):
        net(torch.rand(2, 2))
    with pytest.raises(MemoryError):
        net(torch.rand(2, 2))


def test_bfloat16_results_have_no_numpy_form():
    net = torchspan.load(nn.Identity(), devices="cpu")
    assert net(torch.rand(2, 2).bfloat16()).dtype == torch.bfloat16

    class Lower(nn.Module):
        def forward(self, x):
            return x.bfloat16()

    with pytest.raises(ArgumentError, match="gives bfloat16, which numpy has not"):
        torchspan.load(Lower(), devices="cpu")(np.zeros((2, 2), np.float32))


@pytest.mark.parametrize("devices", DEVICES)
def test_after_closing(mlp_file, devices):
    net = torchspan.load(mlp_file, devices=devices)
    future = net.submit(torch.rand(1000, 64))
    net.close()
    assert future.result(60).shape == (1000, 64)
    net.close()
    for call in (net, net.submit):
        with pytest.raises(ModelError, match="the model is closed"):
            call(torch.rand(2, 64))


def test_closing_while_others_call(mlp_file):
    """A call is either done or told that the model is closed; none hangs or fails otherwise."""
    wrong = []
    for _ in range(5):
        net = torchspan.load(mlp_file, devices="cpu:0,cpu:1")

        def call(net=net):
            try:
                while True:
                    net(torch.zeros(9, 64))
            except ModelError as error:
                if "closed" not in str(error):
                    wrong.append(error)
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for each in threads:
            each.start()
        net(torch.zeros(9, 64))
        net.close()
        for each in threads:
            each.join(30)
        assert not any(each.is_alive() for each in threads)
    assert wrong == []


def test_a_model_that_is_dropped_lets_go_of_its_threads(mlp_file):
    before = set(threading.enumerate())
    net = torchspan.load(mlp_file, devices="cpu:0,cpu:1,cpu:2")
    net(torch.rand(9, 64))
    own = set(threading.enumerate()) - before
    assert len(own) == 3
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None
    for thread in own:
        thread.join(10)
    assert not any(thread.is_alive() for thread in own)


FORKED = """
import os, sys, torch, torchspan
net = torchspan.load(torch.nn.Linear(2, 2), devices="cpu:0,cpu:1")
net(torch.rand(4, 2))
if os.fork() == 0:
    try:
        net(torch.rand(4, 2))
    except torchspan.ModelError as error:
        print(error, flush=True)
    os._exit(0)
print(os.wait()[1], net(torch.rand(4, 2)).shape)
"""


def test_a_forked_child_is_told_and_does_not_hang():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "before this process was forked" in done.stdout
    assert "0 torch.Size([4, 2])" in done.stdout


def test_the_callers_thread_count_is_left_alone(mlp_file):
    before = torch.get_num_threads()
    with torchspan.load(mlp_file, devices="cpu:0,cpu:1") as net:
        net(torch.rand(9, 64))
        assert torch.get_num_threads() == before
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert seen == [before]


def test_the_random_state_is_left_alone(mlp_file):
    torch.manual_seed(3)
    wanted = torch.rand(4)
    torch.manual_seed(3)
    torchspan.load(mlp_file, devices="cpu:0,cpu:1")(torch.zeros(9, 64))
    assert torch.equal(torch.rand(4), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("devices", DEVICES)
def test_a_hundred_thousand_calls_keep_memory_flat(mlp_file, devices):
    calls = 100_000 if devices == "cpu" else 5_000
    x = torch.rand(2, 64)
    with torchspan.load(mlp_file, devices=devices) as net:
        for _ in range(2000):
            net(x)
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(calls):
            net(x)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 4096, f"{grown} kB for {calls} calls"
