"""Choosing a device, with and without a driver."""

from __future__ import annotations

import ctypes
import importlib.util
from typing import Any

import pytest

from lego_mlir import sim
from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import run, select
from lego_mlir.runtime.simulator import Simulator


class FakeDriver:
    """Answers as libcuda would."""

    def __init__(self, status: int, devices: int) -> None:
        def count(pointer: Any) -> int:
            pointer._obj.value = devices
            return 0

        self.cuInit = lambda flags: status
        self.cuDeviceGetCount = count


def install(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver | None) -> None:
    def find(name: str) -> FakeDriver:
        if driver is None:
            raise OSError("cannot open shared object file")
        return driver

    monkeypatch.setattr(ctypes, "CDLL", find)


def test_unknown_device() -> None:
    with pytest.raises(LegoError, match="unknown device 'tpu'") as caught:
        select("tpu")
    assert caught.value.hint == "devices: auto, cuda, sim"


def test_sim_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    device = select("sim")
    assert (device.name, device.reason, device.describe()) == ("sim", "", "sim")


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        (None, "no CUDA driver"),
        (FakeDriver(100, 0), "no CUDA device"),
        (FakeDriver(0, 0), "no CUDA device"),
        (FakeDriver(34, 0), "the CUDA driver fails with error 34"),
    ],
)
def test_fallback_names_the_reason(
    monkeypatch: pytest.MonkeyPatch, driver: FakeDriver | None, reason: str
) -> None:
    install(monkeypatch, driver)
    device = select("auto")
    assert device.name == "sim"
    assert device.describe() == f"sim ({reason})"
    with pytest.raises(LegoError, match=reason) as caught:
        select("cuda")
    assert caught.value.hint == "use --device sim"


def test_driver_without_cuda_core(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeDriver(0, 1))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert select("auto").describe() == "sim (cuda-core is not installed)"
    with pytest.raises(LegoError) as caught:
        select("cuda")
    assert caught.value.hint == "pip install cuda-core"


def test_cuda_where_a_device_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeDriver(0, 1))
    assert select("auto").name == select("cuda").name == "cuda"


def test_arrays_on_a_gpu_need_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """They show that a driver is there: to ask it costs more than a launch."""
    install(monkeypatch, None)
    assert select("auto", on_gpu=True).name == select("cuda", on_gpu=True).name == "cuda"
    assert select("sim", on_gpu=True).name == "sim"


@pytest.mark.parametrize(
    ("text", "order"),
    [("late", ("late", 0)), ("random", ("random", 0)), ("random:17", ("random", 17))],
)
def test_an_order_is_one_of_the_simulator(text: str, order: tuple[str, int]) -> None:
    device = select("auto", order=text)
    assert isinstance(device, Simulator)
    assert (device.order, device.describe()) == (order, "sim (only it has orders)")
    assert select("sim", order=text).describe() == "sim"


@pytest.mark.parametrize("text", ["soon", "late:3", "random:", "random:x", "random:-1", ""])
def test_no_such_order(text: str) -> None:
    with pytest.raises(LegoError, match=f"the simulator has no order '{text}'"):
        select("sim", order=text)


def test_a_gpu_has_no_order() -> None:
    with pytest.raises(LegoError, match="device 'cuda' has no order to choose"):
        select("cuda", order="late")


def test_the_order_reaches_the_launch(copy: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def launch(*arguments: Any, **options: Any) -> None:
        seen.append((options["order"], options["seed"]))

    monkeypatch.setattr(sim, "launch", launch)
    for device in (select("sim", order="random:5"), select("sim", order="early"), "sim"):
        run(copy, device=device)
    assert seen == [("random", 5), ("early", 0), ("late", 0)]
