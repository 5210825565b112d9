"""Which elements of a tile an access reaches, and a range admits: bounds of their coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.index import Int, construct, symbols
from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.open_sizes import index_of, read_sizes, with_read_sizes
from lego_mlir.mlir.tile_ir.operations import slice_of
from lego_mlir.mlir.tile_ir.types import shape_of
from lego_mlir.mlir.tile_passes.fill_invalid.conditions import Bound, Domain, Mask


class Bounds:
    """Reads the indices of a kernel, and makes bounds of them.

    Args:
        kernel: not changed.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._reader = IndexReader()
        read_sizes(kernel.launch, kernel.layouts, self._reader)

    def read_layout(self, op: Any) -> None:
        """Let the reader see through a layout whose sizes are known, and how far an index goes."""
        layout = self._kernel.layouts.of(op)
        if layout.symbols and op.name == dialect.INV:
            for result, n in zip(op.results, layout.dims, strict=True):
                if isinstance(n, int):
                    self._reader.define(result, self._reader.symbol(result, "index", 0, n - 1))
        if layout.symbols or layout.functions or layout.is_partial or layout.window is not None:
            return
        values = [self._reader.read(x) for x in op.operands]
        found = layout.inv(*values) if op.name == dialect.INV else (layout.apply(*values),)
        for result, x in zip(op.results, found, strict=True):
            self._reader.define(result, x)

    def of_access(self, op: Any) -> list[Bound]:
        """Return the bounds of what a load or store of a tile accesses that are not proven.

        There is no element past the end of a dimension along which the tile extends, and none where
        partial tiles pad.
        """
        layout = self._kernel.layouts.of(op)
        index = index_of(op, layout)
        layout = with_read_sizes(op, layout, self._reader)
        dims = {layout_dim: k for k, layout_dim in enumerate(slice_of(op))}
        shape = shape_of(op.results[0] if op.name == dialect.LOAD else op.operands[0])
        found = [
            self._bound([(index[dim], 1)], [(k, 1)], layout.dims[dim]) for dim, k in dims.items()
        ]
        if layout.is_padded:
            found += self._padding(op, layout, index, dims)
        once = [k for k, n in enumerate(shape) if n == 1]
        found = [bound.at_first(once) for bound in found]
        return [bound for bound in found if not bound.is_proven(shape)]

    def of_mask(self, mask: Any) -> Bound | Mask:
        """Return the condition of a tile of truth values; a bound like a load's, if it is one."""
        if not dialect.made_by(mask, tiles.IN_RANGE):
            return Mask(mask)
        op = mask.owner
        limit = tiles.limit_of(op)
        size = tiles.size_of(op) if limit is None else self._reader.read(limit)
        return self._bound([(op.operands[0], 1)], [(tiles.dim_of(op), 1)], size)

    def of_slice(self, op: Any, domain: Domain) -> Domain:
        """Return the conditions on the slice of a tile that a lego.reduce_scatter gives its CTA.

        Args:
            op: the lego.reduce_scatter.
            domain: the conditions on the tile, which are those of all CTAs.

        Raises:
            LegoError: one of them is no bound of a coordinate.
        """
        dim, rank = tiles.dim_of(op), op.operands[1]
        size = shape_of(op.results[0])[dim]
        found = []
        for c in domain:
            if not isinstance(c, Bound):
                raise self._kernel.source.error(
                    f"'{op.name}' of a tile whose elements are valid where a lego.restrict or "
                    "control flow says so",
                    op.location,
                    hint="restrict the slice instead; or lego.fill, in Python lg.fill, gives the "
                    "others a number",
                )
            step = size * dict(c.terms).get(dim, 0)
            origin = construct.add(c.origin, construct.mul(step, self._reader.read(rank)))
            addends = (*c.addends, (rank, step)) if step else c.addends
            found.append(Bound(c.terms, origin, c.size, addends, c.values))
        return frozenset(found)

    def _padding(
        self, op: Any, layout: Layout, index: Sequence[Any], dims: dict[int, int]
    ) -> list[Bound]:
        """Return the bounds of the tensor's coordinates that partial tiles pad."""
        view = layout.view
        assert view is not None
        if view.skew is not None:
            raise self._kernel.source.error(
                f"'{op.name}' of a tile through the skewed layout '{layout}'",
                op.location,
                hint="skewed tiles belong to kernels of threads; a tile may begin anywhere",
            )
        rank = len(view.tiles[0])
        found = []
        for k, size in enumerate(layout.tensor_shape):
            stride, addends, terms = 1, [], []
            for level in reversed(range(len(view.tiles))):
                dim = level * rank + k
                addends.append((index[dim], stride))
                if dim in dims:
                    terms.append((dims[dim], stride))
                if level:
                    stride *= int(view.tiles[level][k])
            whole = construct.mul(stride, view.tiles[0][k])
            if construct.sub(whole, size) != 0:
                found.append(self._bound(addends, terms, size))
        return found

    def _bound(
        self, addends: Sequence[tuple[Any, int]], terms: Sequence[tuple[int, int]], size: Int
    ) -> Bound:
        origin: Int = 0
        found: list[tuple[Any, int]] = []
        for value, factor in addends:
            term = construct.mul(factor, self._reader.read(value))
            origin = construct.add(origin, term)
            # A number is the same inside and outside of a loop, which its constant is not.
            found.append((None, term) if isinstance(term, int) else (value, factor))
        values = {s: self._reader.values[s] for s in symbols(size)}
        return Bound(tuple(sorted(terms)), origin, size, tuple(found), values)
