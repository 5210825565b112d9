"""A kernel that reads A and B of a GEMM once: the limit where C has few rows or columns."""

from __future__ import annotations

import numpy as np

from bench.measure.timing import Call
from bench.peers import nvcc
from bench.peers.base import Setup

READ = "read kernel"

_THREADS = 256
_VECTOR_BYTES = 16
_VECTORS_PER_CTA = 8 * _THREADS  # as in read.cu


def read_kernel(setup: Setup) -> Call:
    """Return a launch that reads both operands by 16-byte accesses and writes nothing."""
    a, b = setup.data.a, setup.data.b
    counts = [matrix.size // _VECTOR_BYTES for matrix in (a, b)]
    grid = (max(1, -(-sum(counts) // _VECTORS_PER_CTA)), 1, 1)
    run = nvcc.launcher(setup, "read", "read_only", grid, (_THREADS, 1, 1))
    sizes = [np.int64(count) for count in counts]
    nowhere = np.uint64(0)

    def launch(k: int) -> None:
        run(a.pointer + k * a.stride, sizes[0], b.pointer + k * b.stride, sizes[1], nowhere)

    return launch
