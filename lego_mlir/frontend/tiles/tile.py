"""Tiles as values of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.frontend import coercion
from lego_mlir.frontend.casts import cast, element_type
from lego_mlir.frontend.dtypes import mlir_element
from lego_mlir.frontend.operators import Operand
from lego_mlir.frontend.tiles.sizes import held_shape, is_size
from lego_mlir.frontend.trace import Trace
from lego_mlir.frontend.values import Value, check_element
from lego_mlir.index.integers import python_integers
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import tile_type


class Tile(Value):
    """Elements that the threads of a CTA hold together, with Python's operators on each.

    Tiles meet as NumPy's arrays do, and scalars with every element: `row - lg.max(row)`,
    `x * w[None, :]`. An index, such as `lg.block_id()`, becomes a number of the tile's integers.

    Some elements may be invalid: those past the end of what a tile was loaded from, and those that
    `lg.restrict` excludes. What is computed of them is invalid; reductions, scans and dots ignore
    them, and stores drop them.
    """

    __slots__ = ("_shape",)

    precedence = 1

    def __init__(
        self, ssa: Any, shape: tuple[int, ...], trace: Trace, *, unsigned: bool = False
    ) -> None:
        super().__init__(ssa, trace, unsigned=unsigned)
        self._shape = shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes; in registers some may be larger."""
        return self._shape

    @property
    def element(self) -> Any:
        """The MLIR element type."""
        return self.ssa.type.element_type

    @property
    def described(self) -> str:
        """The type as errors show it."""
        return f"tile<{'x'.join(map(str, (*self.shape, self.dtype)))}>"

    def __repr__(self) -> str:
        return f"<kernel {self.described}>"

    def __iter__(self) -> Any:
        raise self._trace.error(
            "a tile has no elements one by one: threads hold it together",
            hint="lg.sum(tile), lg.max(tile) and others reduce it, lg.take(tile, indices) gathers "
            "elements, lg.split(tile, 2) halves the last dimension",
        )

    def like(self, ssa: Any, *, unsigned: bool | None = None) -> Tile:
        """Return the tile of this shape that another SSA value is."""
        has_no_sign = self._unsigned if unsigned is None else unsigned
        return Tile(ssa, self.shape, self._trace, unsigned=has_no_sign)

    def shaped(self, ssa: Any, shape: tuple[int, ...]) -> Tile:
        """Return the tile of these elements in another shape that another SSA value is."""
        return Tile(ssa, shape, self._trace, unsigned=self._unsigned)

    def spread(self, x: Operand, shape: tuple[int, ...], element: Any, *, unsigned: bool) -> Tile:
        """Return an operand as a tile: a number, a scalar, or a tile with dimensions of size 1."""
        return spread(x, shape, element, self._trace, unsigned=unsigned)

    def _offset(self, layout: Layout, index: tuple[Any, ...]) -> Value:
        from lego_mlir.frontend.tiles import layouts

        return layouts.apply(layout, index, self._trace)  # type: ignore[no-any-return]

    def __lego_inv__(self, layout: Layout) -> tuple[Value, ...]:
        from lego_mlir.frontend.tiles import layouts

        return layouts.inv(layout, self, self._trace)

    def __getitem__(self, index: Any) -> Tile:
        """Return the tile with a dimension of size 1 for each `None` in the index: `t[:, None]`."""
        at = index if isinstance(index, tuple) else (index,)
        entries = [i for i in at if i is not None and i is not Ellipsis]
        wrong = len(entries) > len(self.shape) or at.count(Ellipsis) > 1 if _is_plain(at) else True
        if wrong or any(i != slice(None) for i in entries):
            raise self._trace.error(
                f"the index of {self.described} has ':' for every dimension, and None for new ones",
                hint="t[:, None] is a column; lg.take(t, indices) gathers elements along a "
                "dimension, lg.item(t) is the only one",
            )
        left = len(self.shape) - len(entries)
        if Ellipsis not in at:
            at = (*at, Ellipsis)
        axes: list[Any] = []
        for i in at:
            axes += [slice(None)] * left if i is Ellipsis else [i]
        sizes = iter(self.shape)
        return self.in_shape(tuple(1 if i is None else next(sizes) for i in axes))

    @property
    def T(self) -> Tile:  # noqa: N802  (NumPy's name)
        """The tile with its dimensions in reverse order."""
        return self.transpose(*reversed(range(len(self.shape))))

    def transpose(self, *order: int) -> Tile:
        """Return the tile whose dimension `k` is this one's dimension `order[k]`.

        Raises:
            LegoError: it is no order of the dimensions.
        """
        if sorted(order) != list(range(len(self.shape))):
            raise self._trace.error(f"{order} is no order of the dimensions of {self.described}")
        shape = tuple(self.shape[k] for k in order)
        kind = self._kind(shape)
        return self.shaped(tiles.transpose(kind, self.ssa, order, self._trace.here()), shape)

    def reshape(self, *sizes: int | tuple[int, ...]) -> Tile:
        """Return the elements, in row-major order, as a tile of another shape.

        Args:
            sizes: whose product is the number of elements; or one tuple of them.

        Raises:
            LegoError: it is another number, or sizes are rounded up in registers.
        """
        shape: Any = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple) else sizes
        shape = python_integers(shape)
        if not all(map(is_size, shape)) or prod(shape) != prod(self.shape):
            raise self._trace.error(
                f"{self.described} has {prod(self.shape)} elements, the shape {shape} has not",
                hint="positive integers, whose product is the number of elements",
            )
        if [n for n in shape if n > 1] != [n for n in self.shape if n > 1]:
            for one in (self.shape, shape):
                held = self._held(one)
                if held != one:
                    raise self._trace.error(
                        f"a tile of sizes {one} is held as one of {held}, so that its elements in "
                        "row-major order are not those of another shape",
                        hint="reshape tiles whose sizes are powers of two",
                    )
        return self.in_shape(tuple(shape))

    def in_shape(self, shape: tuple[int, ...]) -> Tile:
        """Return the elements, in row-major order, in a shape that has the same sizes but for 1."""
        if shape == self.shape:
            return self
        kind = self._kind(shape)
        (found,) = _once(tiles.RESHAPE, tiles.reshape, kind, self.ssa, self._trace)
        return self.shaped(found, tuple(shape))

    def _held(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return held_shape(shape, holding_warps(self._trace), self._trace.tile_multiple)

    def _kind(self, shape: tuple[int, ...]) -> Any:
        return tile_type(self._held(shape), self.element)


def _is_plain(at: tuple[Any, ...]) -> bool:
    """Return whether an index has no kernel values, whose comparisons are none of Python's."""
    return not any(isinstance(i, Value) for i in at)


def warps_of(trace: Trace, what: str = "a tile") -> int:
    """Return the warps of a kernel on tiles.

    Raises:
        LegoError: the kernel is one of threads.
    """
    if trace.warps is None:
        raise trace.error(
            f"{what} is for kernels on tiles",
            hint="@lg.kernel(grid=..., warps=4): the threads of a CTA hold tiles together",
        )
    return trace.warps


def holding_warps(trace: Trace) -> int:
    """Return the warps that hold tiles together: those of a CTA, or of all CTAs of a cluster.

    Raises:
        LegoError: the kernel is one of threads.
    """
    return warps_of(trace) * trace.cluster


def type_of(shape: tuple[int, ...], element: Any, trace: Trace) -> Any:
    """Return the MLIR type of a tile of these sizes."""
    return tile_type(held_shape(shape, holding_warps(trace), trace.tile_multiple), element)


def spread(
    x: Operand, shape: tuple[int, ...], element: Any, trace: Trace, *, unsigned: bool = False
) -> Tile:
    """Return an operand as a tile of a shape.

    Args:
        x: a number; a scalar, which every element gets; or a tile with dimensions of size 1.
        shape: the sizes.
        element: the MLIR element type. An index becomes one of its integers.
        trace: of the kernel.
        unsigned: its integers are unsigned.

    Raises:
        LegoError: it has another element type, or another shape.
    """
    trace.check_active()
    kind = type_of(shape, element, trace)
    if not isinstance(x, Value):
        found = coercion.constant(x, kind, trace, unsigned=unsigned)
        return Tile(found, shape, trace, unsigned=unsigned)
    x.trace.check_active()
    is_index = isinstance(element_type(x.ssa.type), ir.IndexType)
    if is_index and isinstance(element, ir.IntegerType):
        number = cast(x.ssa, element, trace, from_unsigned=False, to_unsigned=unsigned)
        x = Value(number, trace, unsigned=unsigned)
    check_element(x, element, unsigned=unsigned)
    if not isinstance(x, Tile):
        if isinstance(x.ssa.type, ir.VectorType):
            raise trace.error(
                f"{x.described} is a vector, which a thread holds, and no tile",
                hint="in kernels on tiles, lg.full, lg.arange and loads make tiles",
            )
        (found,) = _once(tiles.FULL, tiles.full, kind, x.ssa, trace)
        return Tile(found, shape, trace, unsigned=unsigned)
    if x.shape == shape:
        return x
    if coercion.common_shape([x.shape, shape]) != shape:
        raise trace.error(f"{x.described} does not broadcast to the shape {shape}")
    wider = x.in_shape((*[1] * (len(shape) - len(x.shape)), *x.shape))
    (found,) = _once(tiles.BROADCAST, tiles.broadcast, kind, wider.ssa, trace)
    return Tile(found, shape, trace, unsigned=unsigned)


def _once(name: str, build: Callable[..., Any], kind: Any, operand: Any, trace: Trace) -> list[Any]:
    """Return what an operation of a type makes of an operand, recorded once."""
    return trace.once((name, kind, operand), lambda: [build(kind, operand, trace.here())])


def restricted(tile: Tile, sizes: tuple[int | None, ...]) -> Tile:
    """Return a tile whose elements are invalid past sizes where it is held larger.

    Args:
        tile: any.
        sizes: for each dimension where valid elements end; `None` where another operation, such as
            the load, sees to that.
    """
    trace = tile.trace
    held = tuple(tile.ssa.type.shape)
    for dim, size in enumerate(sizes):
        if size is None or held[dim] == size:
            continue
        kind = tile_type(held, ir.IntegerType.get_signless(1))
        zero = coercion.constant(0, ir.IndexType.get(), trace)
        mask = tiles.in_range(kind, zero, dim, size, trace.here())
        tile = tile.like(tiles.restrict(tile.ssa, mask, trace.here()))
    return tile


def full(shape: Any, number: Operand, dtype: str, trace: Trace, *, unsigned: bool) -> Tile:
    """Return the tile whose elements all are one number."""
    made = spread(number, shape, mlir_element(dtype), trace, unsigned=unsigned)
    return restricted(made, shape)
