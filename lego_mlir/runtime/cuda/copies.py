"""Copies of host arrays in a device's memory."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import Any

from lego_mlir.runtime.cuda.failures import check
from lego_mlir.runtime.dtypes import Array


def copy_in(array: Array, device: Any, stream: Any, cleanup: ExitStack) -> int:
    """Copy a C-contiguous host array to the device; return the address, freed at the end."""
    from cuda.bindings import driver

    if array.nbytes == 0:
        return 0
    buffer = device.allocate(array.nbytes, stream=stream)
    cleanup.callback(_free, buffer)
    pointer = int(buffer.handle)
    check(driver.cuMemcpyHtoDAsync(pointer, array.ctypes.data, array.nbytes, stream.handle))
    return pointer


def _free(buffer: Any) -> None:
    with suppress(Exception):  # after a kernel's failure this fails, too, and says nothing new
        buffer.close()


def copy_out(array: Array, pointer: int, stream: Any) -> None:
    """Copy from an address in the device's memory to a C-contiguous host array."""
    from cuda.bindings import driver

    check(driver.cuMemcpyDtoHAsync(array.ctypes.data, pointer, array.nbytes, stream.handle))
