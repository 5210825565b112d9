"""Scans of tiles: each element becomes the combination of those up to it.

Invalid elements are ignored. Sums and products of f16 and bf16 are computed in f32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir.frontend.tiles.creation import checked_axis, checked_tile
from lego_mlir.frontend.tiles.reductions import checked_tiles, fill_body, identities
from lego_mlir.frontend.tiles.tile import Tile
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.mlir.dialect import tile_operations as tiles


def cumsum(tile: Tile, axis: int | None = None, *, reverse: bool = False) -> Tile:
    """Return the sums of the elements up to each one along a dimension.

    Args:
        tile: numbers.
        axis: the dimension; a tile of one dimension has only one.
        reverse: whether the sums begin at the last element.
    """
    return _by_kind("add", "cumsum", tile, axis, reverse=reverse)


def cumprod(tile: Tile, axis: int | None = None, *, reverse: bool = False) -> Tile:
    """Return the products of the elements up to each one; arguments as those of `cumsum`."""
    return _by_kind("mul", "cumprod", tile, axis, reverse=reverse)


def cummax(tile: Tile, axis: int | None = None, *, reverse: bool = False) -> Tile:
    """Return the greatest of the elements up to each one; arguments as those of `cumsum`."""
    return _by_kind("max", "cummax", tile, axis, reverse=reverse)


def cummin(tile: Tile, axis: int | None = None, *, reverse: bool = False) -> Tile:
    """Return the smallest of the elements up to each one; arguments as those of `cumsum`."""
    return _by_kind("min", "cummin", tile, axis, reverse=reverse)


def scan(
    function: Callable[..., Any],
    operand: Tile | tuple[Tile, ...],
    axis: int | None = None,
    *,
    identity: Any = None,
    reverse: bool = False,
) -> Any:
    """Return the combinations of the elements up to each one by a function of one's own.

        # y[k] = a[k] y[k-1] + b[k]
        _, y = lg.scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, b))

    Args:
        function: takes two scalars and returns one; of several tiles it takes two tuples and
            returns one. It is associative. The first argument is what comes first in the tile,
            also of a reversed scan: element k becomes f(x[k], f(x[k + 1], ...)).
        operand: a tile, or up to four of one shape.
        axis: the dimension; tiles of one dimension have only one.
        identity: a number, or a tuple of them, that stands for invalid elements.
        reverse: whether the combinations begin at the last element.
    """
    trace = current("scan")
    parts = checked_tiles(operand, trace, "scan")
    dim = _dim(axis, parts[0], trace, "scan")
    op = tiles.combine_with(
        tiles.SCAN_WITH,
        [x.ssa.type for x in parts],
        [x.ssa for x in parts],
        dim,
        identities(identity, parts, trace),
        trace.here(),
        reverse=reverse,
    )
    fill_body(op, function, parts, trace, is_one=not isinstance(operand, tuple))
    results = tuple(x.like(found) for x, found in zip(parts, op.results, strict=True))
    return results if isinstance(operand, tuple) else results[0]


def _by_kind(kind: str, what: str, tile: Any, axis: int | None, *, reverse: bool) -> Tile:
    """Scan a tile by lego.scan."""
    trace = current(what)
    checked_tile(tile, trace, what)
    tile.check_arithmetic(what)
    dim = _dim(axis, tile, trace, what)
    is_order = kind in ("max", "min")
    if is_order and tile.dtype.startswith("u"):
        kind = f"u{kind}"
    dtype = tile.dtype
    wide = tile.to("f32") if dtype in ("f16", "bf16") and not is_order else tile
    found: Tile = wide.like(tiles.scan(wide.ssa, kind, dim, trace.here(), reverse=reverse))
    if found.dtype == dtype:
        return found
    short = found.to(dtype)
    assert isinstance(short, Tile)
    return short


def _dim(axis: int | None, tile: Tile, trace: Trace, what: str) -> int:
    if axis is None and len(tile.shape) != 1:
        raise trace.error(
            f"'{what}' of {tile.described} needs a dimension", hint=f"lg.{what}(x, axis=0)"
        )
    return checked_axis(0 if axis is None else axis, tile.shape, trace, what)
