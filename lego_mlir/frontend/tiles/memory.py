"""Loads and stores of tiles: of whole dimensions, of a grid of tiles, and at indices.

x[i, :]                    a whole dimension
x.tile(128, 64)[m, k]      tile (m, k) of a grid of tiles
x[rows[:, None], columns]  the elements at indices that tiles hold
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lego_mlir.algebra.sizes import ceildiv, size_text
from lego_mlir.frontend.dtypes import is_unsigned, mlir_element
from lego_mlir.frontend.operators import Operand, meet_in_shape
from lego_mlir.frontend.tiles.placement import checked_layout
from lego_mlir.frontend.tiles.sizes import is_size
from lego_mlir.frontend.tiles.tile import Tile, restricted, spread, type_of, warps_of
from lego_mlir.frontend.values import Value, as_index
from lego_mlir.index import Int, Sym
from lego_mlir.index.integers import python_integers
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import tile_type

if TYPE_CHECKING:
    from lego_mlir.frontend.tensors import TensorValue


@dataclass(frozen=True)
class TilePlace:
    """The part of a tensor that a tile is loaded from or stored to.

    Attributes:
        tensor: the tensor.
        origin: the index of the tile's first element, one entry a dimension.
        dims: the dimensions along which the tile extends, ascending.
        shape: the tile's sizes along them.
        whole: those of these dimensions that the tile has from end to end.
        layout: where threads hold a tile that is loaded; `None` if the compiler chooses.
    """

    tensor: TensorValue
    origin: tuple[Operand, ...]
    dims: tuple[int, ...]
    shape: tuple[int, ...]
    whole: tuple[int, ...] = ()
    layout: Any = None

    def load(self) -> Tile:
        """Return the tile.

        Raises:
            LegoError: its layout is wrong.
        """
        tensor, trace = self.tensor, self.tensor.trace
        kind = open_kind = type_of(self.shape, mlir_element(tensor.dtype), trace)
        if self.layout is not None:
            what = f"a tile of tensor '{tensor.name}'"
            layout = checked_layout(self.layout, tuple(open_kind.shape), what, trace)
            kind = tile_type(open_kind.shape, open_kind.element_type, layout)
        operands, attributes = self._access()
        found = dialect.load(kind, tensor.memref, operands, attributes, trace.here())
        if kind != open_kind:
            found = tiles.convert(open_kind, found, trace.here())
        tile = Tile(found, self.shape, trace, unsigned=is_unsigned(tensor.dtype))
        return restricted(tile, self._ends())

    def store(self, value: Operand) -> None:
        """Store a value, which is spread to the tile's shape."""
        tensor, trace = self.tensor, self.tensor.trace
        unsigned = is_unsigned(tensor.dtype)
        tile = spread(value, self.shape, mlir_element(tensor.dtype), trace, unsigned=unsigned)
        tile = restricted(tile, self._ends())
        operands, attributes = self._access(exclusive=tensor.is_exclusive)
        dialect.store(tile.ssa, tensor.memref, operands, attributes, trace.here())

    def _access(self, **units: bool) -> tuple[list[Any], dict[str, Any]]:
        trace = self.tensor.trace
        operands = [as_index(i, trace).ssa for i in self.origin]
        attributes = dialect.access_attributes(self.tensor.layout_attribute, self.dims, **units)
        return operands + self.tensor.size_operands, attributes

    def _ends(self) -> tuple[int | None, ...]:
        """Return where valid elements end that are not the last of the tensor's dimension."""
        whole = self.tensor.dims
        return tuple(
            None if dim in self.whole or self._reaches(n, whole[dim]) else n
            for dim, n in zip(self.dims, self.shape, strict=True)
        )

    def _reaches(self, n: int, size: Int) -> bool:
        """Return whether so many elements are known to be all of a dimension, or more."""
        most = self.tensor.trace.bounds.get(size.name) if isinstance(size, Sym) else size
        return isinstance(most, int) and n >= most


class TileGrid:
    """A tensor as a grid of tiles: `x.tile(128, 64)[m, k]` is tile (m, k), padded at the edges.

    Tiles begin every `step` elements, which are as many as they have, unless they overlap.
    """

    __slots__ = ("_layout", "_sizes", "_steps", "_tensor")

    def __init__(
        self,
        tensor: TensorValue,
        sizes: Sequence[int],
        layout: Any = None,
        steps: Sequence[int] | None = None,
    ) -> None:
        trace, whole = tensor.trace, tensor.dims
        warps_of(trace, "x.tile()")
        sizes = [python_integers(n) for n in sizes]
        if not sizes or not all(map(is_size, sizes)):
            raise trace.error(f"the sizes of a tile are positive integers, not {tuple(sizes)}")
        if len(sizes) > len(whole):
            raise trace.error(
                f"tensor '{tensor.name}' has the dimensions {_shown(whole)}, a tile of sizes "
                f"{tuple(sizes)} has more"
            )
        self._tensor = tensor
        self._sizes = tuple(sizes)
        self._layout = layout
        self._steps = self._sizes if steps is None else tuple(map(python_integers, steps))
        if len(self._steps) != len(sizes) or not all(map(is_size, self._steps)):
            raise trace.error(
                f"the tiles of tensor '{tensor.name}' have the sizes {self._sizes}, and begin "
                f"every {self._steps} elements: a positive integer for each size",
                hint="x.tile(128, step=8), x.tile(64, 128, step=(64, 8))",
            )

    def placed(self, layout: Any) -> TileGrid:
        """Return the same grid, whose tiles threads load as a distributed layout says.

        Args:
            layout: as `convert` takes it.
        """
        return TileGrid(self._tensor, self._sizes, layout, self._steps)

    @property
    def shape(self) -> tuple[int | Value, ...]:
        """The number of indices of each dimension: of the tensor, then of the grid of tiles."""
        return tuple(n if isinstance(n, int) else self._tensor.size(n) for n in self._counts)

    @property
    def _counts(self) -> tuple[Int, ...]:
        whole = self._tensor.dims
        lead = len(whole) - len(self._sizes)
        counts = (ceildiv(n, t) for n, t in zip(whole[lead:], self._steps, strict=True))
        return (*whole[:lead], *counts)

    def __repr__(self) -> str:
        return f"<tiles of sizes {self._sizes} of {self._tensor!r}>"

    def __getitem__(self, index: Any) -> Tile:
        return self._place(index).load()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._tensor.check_stored()
        self._place(index).store(value)

    def _place(self, index: Any) -> TilePlace:
        tensor = self._tensor
        at = index if isinstance(index, tuple) else (index,)
        counts = self._counts
        if len(at) != len(counts):
            raise tensor.trace.error(
                f"the tiles of tensor '{tensor.name}' are a grid of sizes {_shown(counts)}, the "
                f"index has {len(at)} entries"
            )
        _check_inside(f"the tiles of tensor '{tensor.name}'", at, counts, tensor)
        lead = len(counts) - len(self._sizes)
        origin = [
            as_index(i, tensor.trace) * n if n > 1 and not isinstance(i, int) else i * n
            for i, n in zip(at[lead:], self._steps, strict=True)
        ]
        dims = tuple(range(lead, len(counts)))
        return TilePlace(tensor, (*at[:lead], *origin), dims, self._sizes, layout=self._layout)


def has_tiles(index: Any) -> bool:
    """Return whether an index has tiles."""
    at = index if isinstance(index, tuple) else (index,)
    return any(isinstance(i, Tile) for i in at)


def load(tensor: TensorValue, index: tuple[Any, ...]) -> Tile:
    """Return the tile at an index, whose entry is `None` for a whole dimension."""
    return _whole(tensor, index).load()


def store(tensor: TensorValue, index: tuple[Any, ...], value: Any) -> None:
    """Store a value at an index, whose entry is `None` for a whole dimension."""
    _whole(tensor, index).store(value)


def _whole(tensor: TensorValue, index: tuple[Any, ...]) -> TilePlace:
    _check_inside(f"tensor '{tensor.name}'", index, tensor.dims, tensor)
    dims = tuple(k for k, i in enumerate(index) if i is None)
    origin = tuple(0 if i is None else i for i in index)
    return TilePlace(tensor, origin, dims, tuple(tensor.most(d) for d in dims), dims)


def _check_inside(
    what: str, index: Sequence[Any], sizes: Sequence[Int], tensor: TensorValue
) -> None:
    """Raise LegoError for a number that is no index of its dimension."""
    for k, (i, n) in enumerate(zip(index, sizes, strict=True)):
        if isinstance(i, int) and (i < 0 or _is_at_least(i, n)):
            raise tensor.trace.error(f"index {k} of {what} is {i}, its size is {n}")


def _is_at_least(i: int, size: Int) -> bool:
    """Return whether a number is known to be at least a size."""
    return isinstance(size, int) and i >= size


def _shown(sizes: Sequence[Int]) -> str:
    """Return sizes as errors show them: numbers as Python has them."""
    return f"({', '.join(map(size_text, sizes))}{',' * (len(sizes) == 1)})"


def gather(tensor: TensorValue, index: Any) -> Tile:
    """Return the tile of the elements at indices, some of which are tiles."""
    trace = tensor.trace
    indices, shape = index_tiles(tensor, index)
    kind = type_of(shape, mlir_element(tensor.dtype), trace)
    layout = tensor.layout_attribute
    operands = [i.ssa for i in indices]
    sizes = tensor.size_operands
    found = tiles.gather(kind, tensor.memref, operands, layout, sizes, trace.here())
    return Tile(found, shape, trace, unsigned=is_unsigned(tensor.dtype))


def scatter(tensor: TensorValue, index: Any, value: Any, by: str | None = None) -> None:
    """Store a value at indices, some of which are tiles, or update elements there atomically.

    Args:
        tensor: in memory.
        index: as NumPy has it.
        value: spread to the shape of the indices.
        by: the kind of an atomic update.
    """
    trace = tensor.trace
    indices, shape = index_tiles(tensor, index)
    tensor.check_stored()
    unsigned = is_unsigned(tensor.dtype)
    tile = spread(value, shape, mlir_element(tensor.dtype), trace, unsigned=unsigned)
    operands, sizes = [i.ssa for i in indices], tensor.size_operands
    layout = tensor.layout_attribute
    tiles.scatter(tile.ssa, tensor.memref, operands, layout, sizes, by, trace.here())


def index_tiles(tensor: TensorValue, index: Any) -> tuple[list[Tile], tuple[int, ...]]:
    """Return an index as one tile of i32 a dimension of the tensor, and the shape of all.

    As in NumPy, indices broadcast together, and their dimensions stand where the first of them
    does; a `:` is a dimension of its own.
    """
    trace, whole = tensor.trace, tensor.dims
    at = list(index) if isinstance(index, tuple) else [index]
    if any(i is Ellipsis for i in at):
        k = next(k for k, i in enumerate(at) if i is Ellipsis)
        at[k : k + 1] = [slice(None)] * (len(whole) - len(at) + 1)
    if len(at) != len(whole) or any(isinstance(i, slice) and i != slice(None) for i in at):
        raise trace.error(
            f"tensor '{tensor.name}' has {len(whole)} dimensions: an index has so many tiles, "
            f"numbers or ':', not {len(at)}"
        )
    i32 = ir.IntegerType.get_signless(32)
    given = [k for k, i in enumerate(at) if not isinstance(i, slice)]
    if given[-1] - given[0] >= len(given):
        raise trace.error(
            f"the index of tensor '{tensor.name}' has ':' between its tiles",
            hint="write a tile for this dimension, too: lg.arange(n)",
        )
    rank = max(len(i.shape) for i in at if isinstance(i, Tile))
    behind = len(whole) - given[-1] - 1
    found: list[Tile] = []
    for k, i in enumerate(at):
        if isinstance(i, slice):
            place = k if k < given[0] else given[0] + rank + k - given[-1] - 1
            total = given[0] + rank + behind
            found.append(_along(tensor, k, place, total))
        elif isinstance(i, Tile):
            if not isinstance(i.element, ir.IntegerType) or i.dtype == "i1":
                raise trace.error(
                    f"an index of tensor '{tensor.name}' is {i.described}, no integers",
                    hint='.to("i32") converts it',
                )
            short = i if i.element == i32 and i.dtype == "i32" else i.to("i32")
            assert isinstance(short, Tile)
            found.append(short.in_shape((*short.shape, *[1] * behind)))
        else:
            number = i if isinstance(i, Value) else as_index(i, trace)
            found.append(spread(number, (1,) * (rank + behind), i32, trace))
    met = meet_in_shape(found, trace)
    return [tile for tile in met if isinstance(tile, Tile)], met[0].shape


def _along(tensor: TensorValue, dim: int, place: int, rank: int) -> Tile:
    """Return the indices of a whole dimension as a tile along one of `rank` dimensions."""
    trace, size, most = tensor.trace, tensor.dims[dim], tensor.most(dim)
    shape = tuple(most if k == place else 1 for k in range(rank))
    kind = type_of(shape, ir.IntegerType.get_signless(32), trace)
    tile = restricted(Tile(tiles.iota(kind, place, trace.here()), shape, trace), shape)
    if isinstance(size, int):
        return tile
    truth = type_of(shape, ir.IntegerType.get_signless(1), trace)
    zero, end = as_index(0, trace).ssa, tensor.size(size).ssa
    mask = tiles.in_range(truth, zero, place, most, trace.here(), end)
    return tile.like(tiles.restrict(tile.ssa, mask, trace.here()))
