"""The CUDA driver through cuda-bindings, which comes with cuda-core; errors are exceptions."""

from __future__ import annotations

import functools
from typing import Any

from lego_mlir.runtime.cuda.timing import driver_call as call

__all__ = ["attribute", "call", "driver", "synchronize"]


@functools.cache
def driver() -> Any:
    """Return the module of the driver's functions."""
    from cuda.bindings import driver

    return driver


def synchronize() -> None:
    """Wait for all work of the device; a kernel's error is raised here."""
    call(driver().cuCtxSynchronize)


def attribute(name: str, device: int) -> int:
    """Return a device attribute, named as in `CUdevice_attribute` without the prefix."""
    key = getattr(driver().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(call(driver().cuDeviceGetAttribute, key, device))
