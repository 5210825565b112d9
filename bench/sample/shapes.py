"""Random GEMMs: sizes log-uniform from 1 to 16,384, of three classes of alignment."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from bench.gemm.cases import OUTPUT_TYPES
from bench.gemm.references import GemmReference
from lego_mlir.hardware.dtypes import ELEMENT_BYTES

MAX_SIZE = 16384
MIN_FLOPS, MAX_FLOPS = 1e6, 1e13

KINDS = (
    *(("f16", a, b) for a in ("row", "col") for b in ("row", "col")),
    *(("bf16", a, b) for a in ("row", "col") for b in ("row", "col")),
    ("f8E4M3FN", "row", "col"),
)
"""Element type of A and B, order of A and order of B."""

ALIGNED, LINES, ANY = "aligned", "lines", "any"
"""Sizes that are multiples of 16 bytes' worth of elements, of 128 elements, and any sizes."""

FEW = "few"
"""At most 32 rows or columns, and a matrix that device memory has to read: of any sizes, or of
multiples as in `ALIGNED`."""

_MOST_FEW, _LEAST_LARGE = 32, 512
"""Sizes of `FEW`: the smallest at most, and the two others at least."""

_CLASSES = (ALIGNED, LINES, ALIGNED, ANY)


def random_gemms(seed: int, count: int, only: str = "") -> Iterator[tuple[str, GemmReference]]:
    """Yield GEMMs and their classes: half `aligned`, a quarter `lines`, a quarter `any`.

    Args:
        seed: of the random numbers; a seed always gives the same GEMMs.
        count: how many.
        only: a class; the first three if empty.
    """
    numbers = random.Random(seed)
    found = 0
    while found < count:
        which = only or _CLASSES[found % len(_CLASSES)]
        if which == FEW:
            which = (ALIGNED, ANY)[found % 2]
        kinds = KINDS[:-1] if which == ANY else KINDS  # cuBLAS has no fp8 of any size
        dtype, a, b = numbers.choice(kinds)
        step = {ALIGNED: 16 // ELEMENT_BYTES[dtype], LINES: 128, ANY: 1}[which]
        if only == FEW:
            few = _size(numbers, step, 1, _MOST_FEW)
            n, k = (_size(numbers, step, _LEAST_LARGE, MAX_SIZE) for _ in range(2))
            m, n = (few, n) if numbers.random() < 0.5 else (n, few)
        else:
            m, n, k = (_size(numbers, step, 1, MAX_SIZE) for _ in range(3))
        if MIN_FLOPS <= 2.0 * m * n * k <= MAX_FLOPS:
            found += 1
            yield which, GemmReference(m, n, k, dtype, OUTPUT_TYPES[dtype], a, b)


def _size(numbers: random.Random, step: int, least: int, most: int) -> int:
    """Return a log-uniform size, rounded up to a multiple."""
    size = math.exp(numbers.uniform(math.log(least), math.log(most)))
    return -(-int(size) // step) * step
