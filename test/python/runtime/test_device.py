"""Choosing a device, with and without a driver."""

from __future__ import annotations

import ctypes
import importlib.util
from typing import Any

import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import select


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
