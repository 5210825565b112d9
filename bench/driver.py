"""The CUDA driver by cuda-bindings, which comes with cuda-core; its errors as exceptions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


@functools.cache
def driver() -> Any:
    """The module of the driver's functions."""
    from cuda.bindings import driver

    return driver


def call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """What a driver function returns beside its status.

    Raises:
        RuntimeError: the status is an error; names function and status.
    """
    status, *values = function(*arguments)
    if int(status):
        name = getattr(function, "__name__", "the driver")
        raise RuntimeError(f"{name}: {getattr(status, 'name', status)}")
    return values[0] if values else None


def synchronize() -> None:
    """Wait for all work of the device; an error of a kernel shows here."""
    call(driver().cuCtxSynchronize)


def attribute(name: str, device: int) -> int:
    """An attribute of a device, named as in `CUdevice_attribute` without its long prefix."""
    key = getattr(driver().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(call(driver().cuDeviceGetAttribute, key, device))
