"""A kernel that only reads keys and values: the rate that decoding can have."""

from __future__ import annotations

from typing import Any

import lego_mlir as lg

_ELEMENTS, _WARPS = 16384, 8
"""Elements of a tensor that a CTA reads at once, and its warps."""

_CTAS = 132 * 8


def reading(elements: int) -> lg.Kernel:
    """Return a kernel (k, v, sums) that reads two tensors of so many elements of f16.

    `sums` are f32, as many as `sums_of(elements)`.
    """
    tiles, ctas = elements // _ELEMENTS, sums_of(elements)
    each = -(-tiles // ctas)

    def read(k: Any, v: Any, sums: Any) -> None:
        first = lg.block_id() * each

        @lg.fold(lg.maximum(lg.minimum(each, tiles - first), 0), lg.zeros((_ELEMENTS,), "f32"))
        def total(step: Any, total: Any) -> Any:
            n = lg.minimum(first + step, tiles - 1)
            return total + k.tile(_ELEMENTS)[n].to("f32") + v.tile(_ELEMENTS)[n].to("f32")

        sums[lg.block_id()] = lg.sum(total)

    line = lg.Tensor["f16", (elements,)]
    types = {"k": line, "v": line, "sums": lg.Tensor["f32", (ctas,)]}
    return lg.kernel(grid=ctas, warps=_WARPS, parameters=types)(read)


def sums_of(elements: int) -> int:
    """Return how many sums the kernel stores."""
    return min(elements // _ELEMENTS, _CTAS)
