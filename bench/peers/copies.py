"""Copies of the same bytes, the limit of every data movement: the driver's, and a kernel's."""

from __future__ import annotations

import numpy as np

from bench.driver import call, driver
from bench.peers import nvcc
from bench.peers.base import Setup
from bench.timing import Call

_BLOCK = 256
_BYTES_A_BLOCK = 16 * 4 * _BLOCK  # as in copy.cu


def memcpy(setup: Setup) -> Call:
    """The driver's copy from device to device."""
    data, stream, copy = setup.data, int(setup.stream.handle), driver().cuMemcpyDtoDAsync

    def launch(k: int) -> None:
        offset = k * data.stride
        call(copy, data.outputs + offset, data.inputs + offset, data.size, stream)

    return launch


def kernel(setup: Setup) -> Call:
    """A kernel of 16-byte accesses: the driver's own is slower from 512 MB on."""
    data = setup.data
    grid = (max(1, -(-data.size // _BYTES_A_BLOCK)), 1, 1)
    run = nvcc.launcher(setup, "copy", "copy", grid, (_BLOCK, 1, 1))

    def launch(k: int) -> None:
        offset = k * data.stride
        run(data.inputs + offset, data.outputs + offset, np.int64(data.size))

    return launch
