"""Cache hints of kernels that move tensors, as an H200 is fastest with them.

What was measured stands in bench/results/move_hints.jsonl.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Literal

from lego_mlir.frontend import EmptyType, TensorType
from lego_mlir.frontend.dtypes import bytes_of

_L2_BYTES = 50 << 20
"""About what the L2 cache of an H100 or H200 holds."""

LINE_BYTES: Literal[128] = 128
"""What loads of a permutation bring into the L2 cache: CTAs beside each other read the rest."""


def eviction_of(moved_bytes: int | None, unit_bytes: int = 16) -> Literal["last"] | None:
    """Return when the L2 cache is to evict what a kernel reads that writes as much.

    What it writes should leave first, if not all stays there anyway. Kernels that move units of a
    byte are no faster so, and some take 5 % longer.

    Args:
        moved_bytes: bytes that a launch reads and writes; `None` if only the launch knows.
        unit_bytes: bytes that are stored together.
    """
    fits = moved_bytes is not None and moved_bytes <= _L2_BYTES
    return None if fits or unit_bytes == 1 else "last"


def tensor_bytes(tensors: Iterable[TensorType | EmptyType]) -> int | None:
    """Return the bytes of tensors; `None` if only the launch knows. Empty ones have none."""
    found = 0
    for tensor in tensors:
        if isinstance(tensor, EmptyType):
            continue
        sizes = [n for n in tensor.dims if isinstance(n, int)]
        if len(sizes) < len(tensor.dims):
            return None
        found += prod(sizes) * bytes_of(tensor.dtype)
    return found
