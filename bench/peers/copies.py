"""Copies of the same bytes, by the driver and by a kernel: the limit of every data movement."""

from __future__ import annotations

import numpy as np

from bench.measure.driver import call, driver
from bench.measure.timing import Call
from bench.peers import nvcc
from bench.peers.base import Setup

_THREADS = 256
_BYTES_PER_CTA = 16 * 4 * _THREADS  # as in copy.cu


def memcpy(setup: Setup) -> Call:
    """Return the driver's copy from device to device."""
    data, stream, copy = setup.data, int(setup.stream.handle), driver().cuMemcpyDtoDAsync

    def launch(k: int) -> None:
        offset = k * data.stride
        call(copy, data.outputs + offset, data.inputs + offset, data.size, stream)

    return launch


def copy_kernel(setup: Setup) -> Call:
    """Return a copy by 16-byte accesses; from 512 MB on it is faster than the driver's."""
    data = setup.data
    grid = (max(1, -(-data.size // _BYTES_PER_CTA)), 1, 1)
    run = nvcc.launcher(setup, "copy", "copy", grid, (_THREADS, 1, 1))

    def launch(k: int) -> None:
        offset = k * data.stride
        run(data.inputs + offset, data.outputs + offset, np.int64(data.size))

    return launch
