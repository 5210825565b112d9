"""Conversions of elements to another type, and of the order of dimensions with it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend.dtypes import bytes_of
from lego_mlir.kernels.cache_hints import eviction_of, tensor_bytes
from lego_mlir.kernels.moves.axes import Axis
from lego_mlir.kernels.moves.windows import WARPS, check, tensor, windowed
from lego_mlir.kernels.permute.problem import count_tiles, find_problem, source_view, target_view
from lego_mlir.kernels.public import public

_SIDE = {1: 128, 2: 64, 4: 64, 8: 32}
"""Elements of a tile's side, by the bytes of the smaller type."""

_TILE_BYTES = 1 << 16
"""The bytes of a tile, at most: of the larger type, it leaves threads half of their registers."""


@public
def cast(
    shape: Sequence[int | None],
    source: str,
    target: str,
    *,
    axes: Sequence[int] | None = None,
) -> lg.Kernel:
    """Return a kernel `(x, y)`: y is x with elements of another type, as `.to` converts them.

    Args:
        shape: sizes of x; without axes the first may be `None`: each launch has its own.
        source: element type of x.
        target: element type of y.
        axes: dimension k of y is dimension axes[k] of x; by default the same.

    Raises:
        LegoError: a size or a type is wrong, or the axes are not a permutation.
    """
    check("cast", shape, source, target)
    kept = tuple(range(len(shape)))
    order = kept if axes is None else tuple(axes)
    if sorted(order) != list(kept):
        raise LegoError(
            f"cast: the axes {list(order)} are not a permutation of the {len(shape)} dimensions",
            hint="each dimension once, counted from 0",
        )
    how = f"{source} to {target}"
    if order == kept:
        return windowed("cast", [Axis(n, n) for n in shape], source, target, how)
    if None in shape:
        raise LegoError(
            "cast: the dimensions change their order, and the first one's size is only known to "
            "the launch",
            hint="name all sizes, or leave out the axes",
        )
    return _permuted([n for n in shape if n is not None], order, source, target, how)


def _permuted(
    shape: Sequence[int], axes: Sequence[int], source: str, target: str, how: str
) -> lg.Kernel:
    """Return the kernel that converts tiles of the two innermost dimensions of x and of y."""
    x, y = tensor(source, shape), tensor(target, [shape[k] for k in axes])
    problem = find_problem(shape, axes, x.layout, y.layout)
    assert problem is not None
    others, read, written = list(problem.others), problem.read, problem.written
    if problem.is_copy:
        row = others.pop() if others else None
        reads = writes = [*others, *([row] if row else []), read]
    else:
        reads, writes = [*others, written, read], [*others, read, written]
    smaller, larger = sorted((bytes_of(source), bytes_of(target)))
    side = _SIDE[smaller]
    if side * side * larger > _TILE_BYTES:
        side //= 2
    tile = [side] * min(2, len(reads))
    counts = OrderBy(
        Row(*(m.size for m in others), *(count_tiles(m.size, side) for m in writes[len(others) :]))
    )

    def cast(x: Any, y: Any) -> None:
        number = counts.inv(lg.block_id())
        turned = number if problem.is_copy else (*number[:-2], number[-1], number[-2])
        piece = x.view(source_view(reads)).tile(*tile)[tuple(turned)].to(target)
        out = y.view(target_view(writes)).tile(*tile)
        out[tuple(number)] = piece if problem.is_copy else piece.T

    return lg.kernel(
        grid=prod(n for n in counts.dims if isinstance(n, int)),
        warps=WARPS,
        parameters={"x": x, "y": y},
        explanation=lambda: f"{how}, in tiles of {' by '.join(map(str, tile))}",
        eviction=eviction_of(tensor_bytes([x, y])),
        pdl="wait",
    )(cast)
