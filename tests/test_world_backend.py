# SPDX-License-Identifier: MIT
import types

import pytest

from torchspan import Device, _accelerator, devices
from torchspan._world import _backend
from torchspan._world._backend import choose_backend, choose_interface, describe_rank


def rank(card=None, kind="cpu", host="a", backend=None):
    return {"host": host, "kind": kind, "card": card, "backend": backend, "device": kind}


@pytest.mark.parametrize(
    ("everybody", "backend", "why"),
    [
        ([rank(), rank()], "gloo", "ranks use cpu"),
        (
            [rank("a/1", "cuda"), rank("a/2", "cuda")],
            "cpu:gloo,cuda:nccl",
            "each rank has a cuda device of its own",
        ),
        (
            [rank("a/1", "xpu"), rank("b/1", "xpu", "b")],
            "cpu:gloo,xpu:xccl",
            "each rank has an xpu device of its own",
        ),
        ([rank("a/1", "cuda"), rank("a/1", "cuda")], "gloo", "ranks share 1 devices"),
        ([rank("a/1", "cuda"), rank()], "gloo", "ranks use cpu, cuda"),
        ([rank(None, "mps"), rank(None, "mps", "b")], "gloo", "ranks use mps"),
        ([rank("a/1", "cuda", backend="gloo")], "gloo", "asked for"),
    ],
)
def test_the_backend(everybody, backend, why):
    plan = choose_backend(everybody)
    assert (plan["backend"], plan["why"]) == (backend, why)


def test_different_wishes_are_a_problem_for_all():
    plan = choose_backend([rank(backend="gloo"), rank()])
    assert plan["problem"] == [None, "the ranks ask for different backends: None, gloo"]


def test_places_count_the_ranks_of_each_host():
    plan = choose_backend([rank(host=host) for host in "abaab"])
    assert plan["places"] == [[0, 3], [0, 2], [1, 3], [2, 3], [1, 2]]


def pretend_cards(monkeypatch, **properties):
    module = types.SimpleNamespace(
        get_device_properties=lambda index: types.SimpleNamespace(**properties)
    )
    monkeypatch.setattr(_accelerator, "_module", lambda: module)
    monkeypatch.setattr(_accelerator, "kind", lambda: "cuda")
    monkeypatch.setattr(_backend.dist, "is_nccl_available", lambda: True)


@pytest.mark.parametrize(
    ("properties", "card"),
    [
        ({"pci_domain_id": 0, "pci_bus_id": 23, "pci_device_id": 0, "uuid": "u"}, "0:23:0"),
        ({"uuid": "u-1"}, "u-1"),
        ({}, None),
    ],
)
def test_a_card_is_known_by_its_place_in_the_machine(monkeypatch, properties, card):
    pretend_cards(monkeypatch, **properties)
    facts = describe_rank(Device("cuda", 0, "cuda:0"), None)
    if card is None:
        assert facts["card"] is None
    else:
        assert facts["card"].endswith(f"/{card}")


def test_a_pretended_device_is_no_card(monkeypatch):
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "2")
    facts = describe_rank(devices("cuda:1")[0], None)
    assert (facts["device"], facts["kind"], facts["card"]) == ("cuda:1", "cpu", None)


def test_the_users_interface_is_respected(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "ib0")
    assert choose_interface(None, None) is None


def test_the_interface_is_the_one_that_leads_to_the_others(monkeypatch):
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    own = {"127.0.0.1": "lo", "10.0.0.2": "eth1", "192.168.1.5": "eth0"}
    monkeypatch.setattr(_backend, "find_interfaces", lambda: own)

    class Far(_backend.Spoke):
        def __init__(self, there, here):
            self.there, self.here = there, here

        def ends(self):
            return self.there, self.here

    assert choose_interface(None, None) == "lo"
    assert choose_interface(None, "10.0.0.2") == "eth1"
    assert choose_interface(Far("10.0.0.9", "10.0.0.2"), "10.0.0.9") == "eth1"
    assert choose_interface(Far("192.168.1.5", "192.168.1.5"), "10.0.0.2") == "eth1"
