"""The layouts by which loads and stores of tiles are coalesced, found from the memory's layout.

How fast memory moves along each dimension of a tile is read off the offsets, so that any layout
will do: rows, columns, tiles, swizzles. The width of vectors is proven: their elements are
neighbours in memory, their offset is a multiple, and the buffer is aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout, coalesced
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.index import Int, Sym, construct
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.lowering.buffers import alignment_of
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.scopes import scope_of
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.open_sizes import index_of, read_sizes, typical
from lego_mlir.mlir.tile_ir.roles import Roles
from lego_mlir.mlir.tile_ir.types import bytes_of


@dataclass(frozen=True)
class TileAccess:
    """A load or store of a tile, as far as its layout in registers is concerned.

    Attributes:
        layout: of the memory, with numbers for sizes that only the launch knows.
        dims: the layout's dimensions along which the tile extends.
        shape: of the tile.
        element_bytes: of an element.
        order: the tile's dimensions as they lie in memory, slowest first.
        vector: the most elements that are proven to be accessible at once.
        contiguous: how many of the fastest dimensions follow one another in memory.
        is_store: whether it is a store.
    """

    layout: Layout
    dims: tuple[int, ...]
    shape: tuple[int, ...]
    element_bytes: int
    order: tuple[int, ...]
    vector: int
    contiguous: int
    is_store: bool

    def coalesced(self, warps: int, ctas: int, whole: Sequence[int] = ()) -> DistributedLayout:
        """Return the coalesced layout of the tile; `whole` dimensions are not divided by warps."""
        return _coalesced(self, warps, ctas, tuple(whole))


@lru_cache(maxsize=1 << 10)
def _coalesced(
    access: TileAccess, warps: int, ctas: int, whole: tuple[int, ...]
) -> DistributedLayout:
    return coalesced(
        access.shape,
        access.element_bytes,
        warps,
        ctas=ctas,
        order=access.order,
        vector=access.vector,
        contiguous=access.contiguous,
        whole=whole,
    )


class Accesses:
    """Reads the loads and stores of a kernel, each once, while the kernel stays as it is.

    Attributes:
        kernel: the kernel.
        roles: those of its operations.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self.kernel = kernel
        self.roles = Roles(kernel)
        self._known: dict[Any, TileAccess] = {}

    @cached_property
    def _reader(self) -> IndexReader:
        reader = IndexReader()
        read_sizes(self.kernel.launch, self.kernel.layouts, reader)
        return reader

    def of(self, op: Any) -> TileAccess:
        """Return the access of a lego.load, lego.store or lego.copy_async of a tile."""
        if op not in self._known:
            self._known[op] = self._read(op)
        return self._known[op]

    def _read(self, op: Any) -> TileAccess:
        is_store = op.name == dialect.STORE
        match op.name:
            case dialect.STORE:
                kind, buffer = op.operands[0].type, op.operands[1]
            case dialect.COPY_ASYNC:
                kind, buffer = pipelines.tile_type_of(op.operands[0]), op.operands[2]
            case _:
                kind, buffer = op.results[0].type, op.operands[0]
        tile = ir.RankedTensorType(kind)
        layout = self.kernel.layouts.of(op)
        origin = index_of(op, layout)
        layout = typical(layout, buffer)
        dims = tuple(ir.DenseI64ArrayAttr(op.attributes[dialect.SLICE]))
        shape, size = tuple(tile.shape), bytes_of(tile.element_type)
        order = memory_order(layout, dims, shape)
        vector = 1
        if order:
            fastest = dims[order[-1]]
            start = self._reader.read(origin[fastest])
            aligned = min(alignment_of(buffer, scope_of(op)), MAX_ACCESS_BYTES)
            most = max(1, aligned // size)  # buffers may begin between elements, for all we know
            while most > 1 and construct.mod(start, most) != 0:
                most //= 2
            known = self._known_indices(layout, dims, origin)
            vector = widest_vector(layout, fastest, gcd(most, shape[order[-1]]), known)
            is_whole = vector == shape[order[-1]] == layout.dims[fastest]
            if len(order) > 1 and is_whole and layout.window is None:
                following = dims[order[-2]]
                start = self._reader.read(origin[following])
                rows = gcd(most // vector, shape[order[-2]], int(layout.dims[following]))
                while rows > 1 and not (
                    construct.mod(start, rows) == 0 and _follow(layout, following, rows, vector)
                ):
                    rows //= 2
                if rows > 1:
                    return TileAccess(layout, dims, shape, size, order, vector * rows, 2, is_store)
        return TileAccess(layout, dims, shape, size, order, vector, 1, is_store)

    def _known_indices(
        self, layout: Layout, dims: Sequence[int], origin: Sequence[Any]
    ) -> tuple[int | None, ...]:
        """Return the numbers at which a window is read, such as one of a stencil's neighbours.

        What is read through it may be aligned at some of them, and not at others.
        """
        if layout.window is None:
            return ()
        found = (self._reader.read(x) for x in origin)
        return tuple(
            x if k not in dims and isinstance(x, int) else None for k, x in enumerate(found)
        )


def _follow(layout: Layout, dim: int, rows: int, length: int) -> bool:
    """Return whether the first rows along a dimension lie in memory one after another."""
    zero = [0] * len(layout.dims)
    first = int(layout.apply(*zero))
    at = ([n if k == dim else 0 for k in range(len(zero))] for n in range(rows))
    return all(int(layout.apply(*x)) == first + n * length for n, x in enumerate(at))


@lru_cache(maxsize=1 << 10)
def memory_order(layout: Layout, dims: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a tile's dimensions as they lie in memory, slowest first.

    Args:
        layout: of the memory; its sizes are known.
        dims: its dimensions along which the tile extends.
        shape: of the tile.
    """
    zero = middle(layout)
    layout = layout.clamped()
    first = int(layout.apply(*zero))

    def step(k: int) -> tuple[bool, int]:
        """Return by how much one step along a dimension moves; no dimension without a step."""
        dim = dims[k]
        if shape[k] == 1 or int(layout.dims[dim]) == 1:
            return True, 0
        at = [x + int(d == dim) for d, x in enumerate(zero)]
        return False, abs(int(layout.apply(*at)) - first)

    return tuple(sorted(range(len(dims)), key=step, reverse=True))


@lru_cache(maxsize=1 << 10)
def widest_vector(layout: Layout, dim: int, most: int, known: tuple[int | None, ...] = ()) -> int:
    """Return how many elements along a dimension are proven to be one aligned access.

    Args:
        layout: of the memory.
        dim: its dimension that is to be contiguous.
        most: the most elements, a power of two.
        known: the indices along other dimensions, where they are known.

    Returns:
        A power of two v up to `most`: v elements from each multiple of v along the dimension on are
        neighbours in memory, and the first one's offset is a multiple of v.
    """
    vector = most
    while vector > 1 and not _is_vector(layout, dim, vector, known):
        vector //= 2
    return vector


def middle(layout: Layout) -> list[int]:
    """Return an index that stands for all: the first, of a window one far from its boundary."""
    return [int(n) // 2 if layout.window is not None and n > 2 else 0 for n in layout.dims]


def _is_vector(layout: Layout, dim: int, vector: int, known: tuple[int | None, ...]) -> bool:
    count = int(layout.dims[dim]) // vector
    if count == 0:
        return False
    block, inside = _symbol("block", count), _symbol("inside", vector)
    start = construct.mul(block, vector)
    at = known or (None,) * len(layout.dims)
    index: list[Int] = [
        _symbol(f"index {k}", int(n)) if x is None else x
        for k, (n, x) in enumerate(zip(layout.dims, at, strict=True))
    ]
    index[dim] = start
    try:
        first = layout.apply(*index)
    except LegoError:  # of a window: the index is outside of the tensor
        return False
    index[dim] = construct.add(start, inside)
    distance = construct.sub(layout.apply(*index), first)
    return distance == inside and construct.mod(first, vector) == 0


def _symbol(name: str, size: int) -> Int:
    return Sym(name, 0, size - 1) if size > 1 else 0
