"""The tile program of a movement: tiles of the output are tiles of a window on the input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import Layout, OrderBy, Row, parse_layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import TensorType
from lego_mlir.frontend.dtypes import bytes_of, check_dtype
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, WARP_THREADS
from lego_mlir.kernels.cache_hints import eviction_of, tensor_bytes
from lego_mlir.kernels.moves.axes import Axis, merged

WARPS = 4
_TILE_BYTES, _TILE_ELEMENTS = 16384, 4096
"""The most of a tile: so a thread has at most 32 elements."""

_ROWS = "M"
"""The name of the first dimension, if only the launch knows its size."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """The tiles of a tensor: of its last two dimensions, or of its only one.

    Attributes:
        sizes: of the tensor; the first may be `None`.
        tile: of its last dimensions.
    """

    sizes: tuple[int | None, ...]
    tile: tuple[int, ...]

    @staticmethod
    def of(sizes: tuple[int | None, ...], element_bytes: int) -> Tiling:
        """Return tiles that are as long as rows are, and have as many rows as there is room for."""
        *outer, last = sizes
        room = min(_TILE_BYTES // element_bytes, _TILE_ELEMENTS)
        if last is None:
            return Tiling(sizes, (room,))
        step = WARP_THREADS * max(1, MAX_ACCESS_BYTES // element_bytes)
        pieces = -(-last // room)
        columns = _power(last) if last < step else -(-last // (pieces * step)) * step
        if not outer:
            return Tiling(sizes, (columns,))
        rows = max(1, room // columns)
        above = outer[-1]
        rows = 1 << (rows.bit_length() - 1)
        return Tiling(sizes, (rows if above is None else min(rows, _power(above)), columns))

    @property
    def counts(self) -> Layout:
        """The tiles along each dimension, of which one dimension may be the launch's."""
        tile = (1,) * (len(self.sizes) - len(self.tile)) + self.tile
        pairs = zip(self.sizes, tile, strict=True)
        if None not in self.sizes:
            return OrderBy(Row(*(-(-n // t) for n, t in pairs if n is not None)))
        texts = [f"ceildiv({_ROWS}, {t})" if n is None else str(-(-n // t)) for n, t in pairs]
        return parse_layout(f"OrderBy(Row({', '.join(texts)}))")


def windowed(
    name: str, axes: Sequence[Axis], source: str, target: str, explanation: str
) -> lg.Kernel:
    """Return the kernel `(x, y)` of a movement.

    Args:
        name: of the kernel.
        axes: its dimensions.
        source: element type of x.
        target: element type of y.
        explanation: what `explain()` says of it.
    """
    x = tensor(source, [a.read for a in axes])
    y = tensor(target, [a.written for a in axes])
    fewer = merged(axes)
    tiling = Tiling.of(tuple(a.written for a in fewer), max(map(bytes_of, (source, target))))

    def move(*, x: Any, y: Any) -> None:
        number = tiling.counts.inv(lg.block_id())
        copy_tile(tiling, number, window(x, fewer), flat(y, [a.written for a in fewer]))

    move.__name__ = name
    return _made(move, tiling.counts.size, {"x": x, "y": y}, explanation)


def window(x: Any, axes: Sequence[Axis]) -> Any:
    """Return the window on a tensor that has the output's index, of merged dimensions."""
    x = flat(x, [a.read for a in axes])
    if all(axis.is_kept for axis in axes):
        return x
    sizes = [n if a.written is None else a.written for a, n in zip(axes, x.dims, strict=True)]

    def coordinates(*index: Any) -> tuple[Any, ...]:
        return tuple(a.index(i) for a, i in zip(axes, index, strict=True))

    return x.window(sizes, coordinates, [a.boundary for a in axes])


def flat(x: Any, sizes: Sequence[int | None]) -> Any:
    """Return a row-major tensor with fewer dimensions."""
    return x.view(tensor(x.dtype, sizes).layout)


def copy_tile(tiling: Tiling, number: Sequence[Any], x: Any, y: Any) -> None:
    """Copy tile `number` of x to y, as elements of y's type."""
    source = x.tile(*tiling.tile)[tuple(number)]
    y.tile(*tiling.tile)[tuple(number)] = source if x.dtype == y.dtype else source.to(y.dtype)


def _made(
    body: Callable[..., None], grid: Any, parameters: dict[str, TensorType], explanation: str
) -> lg.Kernel:
    """Return the kernel of a body that takes arguments by name."""
    kinds = [Parameter(n, Parameter.KEYWORD_ONLY) for n in parameters]
    body.__signature__ = Signature(kinds)  # type: ignore[attr-defined]
    return lg.kernel(
        grid=grid,
        warps=WARPS,
        parameters=parameters,
        explanation=lambda: explanation,
        eviction=eviction_of(tensor_bytes(parameters.values())),
        pdl=True,
    )(body)


def tensor(dtype: str, sizes: Sequence[int | None]) -> TensorType:
    """Return the type of a row-major tensor, whose first size the launch may know."""
    if None not in sizes:
        return TensorType(dtype, OrderBy(Row(*(n for n in sizes if n is not None))))
    texts = [_ROWS if n is None else str(n) for n in sizes]
    return TensorType(dtype, parse_layout(f"OrderBy(Row({', '.join(texts)}))"))


def check(name: str, sizes: Sequence[int | None], *dtypes: str) -> None:
    """Check sizes and element types.

    Raises:
        LegoError: one is wrong.
    """
    for dtype in dtypes:
        check_dtype(dtype)
    given: object = sizes
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise LegoError(f"{name}: {sizes!r} is not a shape", hint="a shape is a tuple: (128, 64)")
    wrong = [
        n
        for k, n in enumerate(sizes)
        if not ((isinstance(n, int) and n > 0) or (n is None and not k))
    ]
    if not sizes or wrong:
        raise LegoError(
            f"{name}: {list(sizes)} is not a shape",
            hint="sizes are positive; the first may be None, and each launch has its own",
        )


def _power(n: int) -> int:
    return 1 << (n - 1).bit_length()
