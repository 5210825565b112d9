"""Fragments to and from tiles in shared memory, by `ldmatrix` and `stmatrix`.

The tile is the user's layout with both dimensions split: into warps, fragments and a fragment's
own. Which of a fragment's rows of 16 bytes a lane points at, the fragment's layout says. So every
address is one layout at one index. Where the addresses of two fragments are found to differ by a
constant, whatever lane, warp and slot, one is derived and the other is that plus the constant,
which is part of the instruction.

Source: PTX ISA, "ldmatrix", "stmatrix".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.algebra.subdivide import Subdivision, subdivide
from lego_mlir.analysis.fragments import LANES, Fragment
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.transforms import tiles
from lego_mlir.mlir.transforms.pointers import pointer
from lego_mlir.mlir.transforms.tiles import Tile

ROW_BYTES = 16
"""Of a row of the 8×8 matrices that are moved."""

Place = tuple[int, int]
"""A fragment among those of a warp, along rows and columns."""


@dataclass(frozen=True)
class MatrixAccess:
    """How the warps of a block read or write the fragments of tiles in shared memory.

    Args:
        layout: that the tiles are part of.
        dims: which of its dimensions are a tile's rows and columns; the others are slots.
        fragment: what is moved at once.
        warps: how many of them share the tile along rows and columns.
        bits: of an element.

    Raises:
        LegoError: the layout does not keep the 16 bytes of a matrix's row together.
    """

    layout: Layout
    dims: tuple[int, int]
    fragment: Fragment
    warps: tuple[int, int]
    bits: int
    _pointers: dict[Place, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self.transposed

    @property
    def counts(self) -> tuple[int, int]:
        """The fragments of a warp along rows and columns."""
        sizes = (cast("int", self.layout.dims[k]) for k in self.dims)
        parts = zip(sizes, self.warps, self.fragment.shape, strict=True)
        rows, columns = (size // warps // own for size, warps, own in parts)
        return rows, columns

    @cached_property
    def _split(self) -> Subdivision:
        """The tile's layout with its dimensions split."""
        parts = zip(self.dims, self.warps, self.counts, self.fragment.shape, strict=True)
        return subdivide(self.layout, {k: sizes for k, *sizes in parts})

    def _index(self, row: Any, column: Any, slots: Sequence[Any]) -> tuple[Any, ...]:
        """An index of the split layout; `slots` for the dimensions that are no part of a tile."""
        rest = iter(slots)
        given = dict(zip(self.dims, (row, column), strict=True))
        dims = range(self.layout.rank)
        return self._split.index(*(given[k] if k in given else next(rest) for k in dims))

    @property
    def transposed(self) -> bool:
        """Whether the rows in shared memory are columns of the fragment."""
        return self._starts[0]

    @cached_property
    def _starts(self) -> tuple[bool, Any]:
        """Whether rows are columns of the fragment, and the offset at which each begins.

        The offsets are an array by fragment along rows and columns; then slot, warp and lane.
        """
        for transposed in (False, True) if self.bits == 16 else (False,):
            offsets = self._offsets(transposed)
            starts = offsets[..., :1]
            together = (offsets == starts + np.arange(offsets.shape[-1])).all()
            if together and not (starts * self.bits // 8 % ROW_BYTES).any():
                return transposed, starts[..., 0]
        raise LegoError(
            f"ldmatrix moves {ROW_BYTES * 8 // self.bits} neighbours at once, and the layout "
            f"'{self.layout}' does not keep them together, at multiples of {ROW_BYTES} bytes",
            hint=self._way_out(),
        )

    def _way_out(self) -> str:
        if self.bits == 16:
            return "a layout that does: OrderBy(GenP([rows, columns], swizzle(8, 1, 8)))"
        return (
            f"elements of {self.bits} bits are not transposed on the way: let the dimension that "
            "is summed over be contiguous, in shared memory and so in global memory too"
        )

    def _offsets(self, transposed: bool) -> Any:
        lanes = self.fragment.matrix_rows(transposed=transposed)
        others = [n for k, n in enumerate(self.layout.dims) if k not in self.dims]
        sizes = [cast("int", n) for n in (*self.counts, *others, *self.warps, *lanes.dims)]
        i, j, *slots, down, across, lane, element = np.ix_(*(np.arange(n) for n in sizes))
        row, column = OrderBy(Row(*self.fragment.shape)).inv(lanes.apply(lane, element))
        index = self._index((down, i, row), (across, j, column), slots)
        return np.broadcast_to(self._split.layout.apply(*index), sizes)

    @cached_property
    def _bases(self) -> dict[Place, tuple[Place, int]]:
        """For each fragment another, or itself, and the constant distance in elements from it."""
        _, starts = self._starts
        found: dict[Place, tuple[Place, int]] = {}
        bases: list[Place] = []
        for i, j in np.ndindex(self.counts):
            for base in bases:
                distance = starts[i, j] - starts[base]
                if (distance == distance.flat[0]).all():
                    found[i, j] = base, int(distance.flat[0])
                    break
            else:
                bases.append((i, j))
                found[i, j] = (i, j), 0
        return found

    def prepare(self, tile: Tile, lane: Any, warp: tuple[Any, Any]) -> None:
        """Make the addresses in a tile that all others are constants away from.

        Args:
            tile: of the layout.
            lane: the thread's number in its warp.
            warp: the warp's place along rows and columns; 0 where there is only one.
        """
        rows = self.fragment.matrix_rows(transposed=self.transposed)
        lanes = cast("int", rows.dims[0])
        if lanes != LANES:
            _, lane = tiles.inv(OrderBy(Row(LANES // lanes, lanes)), lane)
        flat = tiles.apply(rows, (lane, 0))
        row, column = tiles.inv(OrderBy(Row(*self.fragment.shape)), flat)
        slots = [i for i in tile.index if i is not None]
        for i, j in dict.fromkeys(base for base, _ in self._bases.values()):
            index = self._index((warp[0], i, row), (warp[1], j, column), slots)
            self._pointers[i, j] = pointer(tile.buffer, self._split.layout, index)

    def load(self, i: int, j: int) -> list[Any]:
        """The registers of a fragment, in the order of its layout; `prepare` comes first."""
        number = self.fragment.matrices
        i32 = ir.IntegerType.get_signless(32)
        kind = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * number)})>")
        found = ir.Operation.create(
            "nvvm.ldmatrix",
            results=[kind],
            operands=[self._pointer(i, j)],
            attributes={"num": ir.IntegerAttr.get(i32, number), **self._attributes()},
        ).results[0]
        return [
            ir.Operation.create(
                "llvm.extractvalue",
                results=[i32],
                operands=[found],
                attributes={"position": ir.DenseI64ArrayAttr.get([k])},
            ).results[0]
            for k in range(number)
        ]

    def store(self, i: int, j: int, registers: Sequence[Any]) -> None:
        """Write a fragment from its registers, in the order of its layout; on sm_90 and later."""
        ir.Operation.create(
            "nvvm.stmatrix",
            operands=[self._pointer(i, j), *registers],
            attributes=self._attributes(),
        )

    def _pointer(self, i: int, j: int) -> Any:
        base, distance = self._bases[i, j]
        start = self._pointers[base]
        if not distance:
            return start
        attributes = {
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([distance * self.bits // 8]),
            "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
        }
        return ir.Operation.create(
            "llvm.getelementptr", results=[start.type], operands=[start], attributes=attributes
        ).results[0]

    def _attributes(self) -> dict[str, Any]:
        order = "col" if self.transposed else "row"
        return {
            "layout": ir.Attribute.parse(f"#nvvm.mma_layout<{order}>"),
            "shape": ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
            "eltType": ir.Attribute.parse("#nvvm.ld_st_matrix_elt_type<b16>"),
        }
