"""Triton's sums of tensors."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_three(x0, x1, x2, BLOCK: tl.constexpr):  # noqa: N803
    """Write the sum of two tensors to the third."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x2 + i, tl.load(x0 + i) + tl.load(x1 + i))


@triton.jit
def add_eight(x0, x1, x2, x3, x4, x5, x6, x7, BLOCK: tl.constexpr):  # noqa: N803
    """Write the sum of seven tensors to the eighth."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x0 + i) + tl.load(x1 + i) + tl.load(x2 + i) + tl.load(x3 + i)
    total += tl.load(x4 + i) + tl.load(x5 + i) + tl.load(x6 + i)
    tl.store(x7 + i, total)


KERNELS = {3: add_three, 8: add_eight}
