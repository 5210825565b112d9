"""The CUDA driver through cuda-bindings, which comes with cuda-core; errors are exceptions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


@functools.cache
def driver() -> Any:
    """Return the module of the driver's functions."""
    from cuda.bindings import driver

    return driver


def call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Call a driver function and return its value without the status.

    Raises:
        RuntimeError: the status is an error; the message names the function and the status.
    """
    status, *values = function(*arguments)
    if int(status):
        name = getattr(function, "__name__", "the driver")
        raise RuntimeError(f"{name}: {getattr(status, 'name', status)}")
    return values[0] if values else None


def synchronize() -> None:
    """Wait for all work of the device; a kernel's error is raised here."""
    call(driver().cuCtxSynchronize)


def attribute(name: str, device: int) -> int:
    """Return a device attribute, named as in `CUdevice_attribute` without the prefix."""
    key = getattr(driver().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(call(driver().cuDeviceGetAttribute, key, device))
