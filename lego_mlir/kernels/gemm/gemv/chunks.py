"""Chunks of A, and where rows begin in them: what configs and fragments have in common."""

from __future__ import annotations

from math import gcd

from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import MMA_ROWS
from lego_mlir.kernels.gemm.problem import Problem

CHUNK_BYTES = 16
"""Bytes that a lane loads at once."""

GROUPS, THREADS = 8, 4
"""The lanes of a warp: eight groups of four threads (PTX ISA, matrix fragments of mma.m16n8)."""

HALVES = MMA_ROWS // GROUPS
"""Rows of a group in an `mma`: one of the upper eight rows, and one of the lower eight."""


def chunk_elements(problem: Problem) -> int:
    """Return the elements of A that a lane loads at once."""
    return CHUNK_BYTES // ELEMENT_BYTES[problem.dtype]


def shift_classes(problem: Problem) -> int:
    """Return at how many different positions in a chunk the rows (or columns) of A begin.

    If there are several, every so-manieth row begins at the same position, so warps load aligned
    chunks of those, and B shifted. It is 1 if all rows begin with a chunk; and in a batch, and for
    rows shorter than a chunk, whose elements are loaded as they are aligned.
    """
    chunk = chunk_elements(problem)
    length = problem.k if problem.a == "row" else problem.m
    if problem.batch > 1 or length < chunk:
        return 1
    return chunk // gcd(chunk, length)


def warp_unit(problem: Problem) -> tuple[int, int]:
    """Return the rows and the k that a warp multiplies at least, with whole chunks of A."""
    chunk = chunk_elements(problem)
    return (MMA_ROWS, THREADS * chunk) if problem.a == "row" else (GROUPS * chunk, 2 * chunk)
