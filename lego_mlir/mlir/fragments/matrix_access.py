"""Loads and stores of fragments in shared memory by `ldmatrix` and `stmatrix`.

`analysis.instructions.ldmatrix` derives the address of each lane. Fragments whose addresses differ
by a constant share one computed address, and their instructions contain the constants.

Source: PTX ISA, "ldmatrix", "stmatrix".
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, cast

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.analysis.instructions.ldmatrix import FragmentId, tile_fragments
from lego_mlir.analysis.instructions.mma_fragments import Fragment
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tiles import accesses
from lego_mlir.mlir.tiles.accesses import Tile
from lego_mlir.mlir.tiles.pointers import beyond, pointer


class MatrixAccess:
    """The access of a CTA's warps to the fragments of tiles in shared memory.

    Args:
        layout: the layout of the shared memory.
        dims: its dimensions that are a tile's rows and columns; the others are stages.
        fragment: the fragment of one instruction.
        warps: the warps along the tile's rows and columns.
        bits: the size of an element.

    Attributes:
        counts: the fragments of a warp along rows and columns.

    Raises:
        LegoError: the layout does not keep the 16 bytes of a matrix's row together.
    """

    def __init__(
        self,
        layout: Layout,
        dims: tuple[int, int],
        fragment: Fragment,
        warps: tuple[int, int],
        bits: int,
    ) -> None:
        self._found = tile_fragments(layout, dims, fragment, warps, bits)
        self.counts = self._found.counts
        self._fragment = fragment
        self._bits = bits
        self._pointers: dict[FragmentId, Any] = {}
        self._shift = 0

    def prepare(self, tile: Tile, lane: Any, warp: tuple[Any, Any]) -> None:
        """Compute the addresses in a tile from which all others differ by constants.

        Args:
            tile: a tile of the layout.
            lane: the thread's lane id.
            warp: the row and column of the warp; 0 if there is only one.
        """
        found = self._found
        rows = self._fragment.matrix_rows(transposed=found.transposed)
        lanes = cast("int", rows.dims[0])
        if lanes != WARP_THREADS:
            _, lane = accesses.inv(OrderBy(Row(WARP_THREADS // lanes, lanes)), lane)
        row, column = accesses.inv(
            OrderBy(Row(*self._fragment.shape)), accesses.apply(rows, (lane, 0))
        )
        stages = [i for i in tile.index if i is not None]
        for i, j in dict.fromkeys(base for base, _ in found.bases.values()):
            index = found.index((warp[0], i, row), (warp[1], j, column), stages)
            self._pointers[i, j] = pointer(tile.buffer, found.split.layout, index)

    def at_distance(self, distance: int) -> MatrixAccess:
        """Return the access to a tile `distance` elements after this one, by the same addresses."""
        other = copy(self)
        other._shift += distance
        return other

    def load(self, i: int, j: int) -> list[Any]:
        """Load a fragment, and return its registers in the order of its layout.

        `prepare` must have been called.
        """
        number = self._fragment.register_count
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
        """Store a fragment from registers in the order of its layout; needs sm_90 or later."""
        ir.Operation.create(
            "nvvm.stmatrix",
            operands=[self._pointer(i, j), *registers],
            attributes=self._attributes(),
        )

    def _pointer(self, i: int, j: int) -> Any:
        base, distance = self._found.bases[i, j]
        return beyond(self._pointers[base], (distance + self._shift) * self._bits // 8)

    def _attributes(self) -> dict[str, Any]:
        order = "col" if self._found.transposed else "row"
        return {
            "layout": ir.Attribute.parse(f"#nvvm.mma_layout<{order}>"),
            "shape": ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
            "eltType": ir.Attribute.parse("#nvvm.ld_st_matrix_elt_type<b16>"),
        }
