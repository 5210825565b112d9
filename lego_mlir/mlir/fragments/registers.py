"""The accumulator of `wgmma` in registers: one struct for each block of 64 rows.

Instructions and loops pass the struct on as a whole. Other operations extract its elements:

    !llvm.struct<(f32, f32, ...)>     64 rows by 8 columns: 4 elements of each thread

The first two are in the upper half of the warp's 16 rows, the other two in the lower half.

Source: PTX ISA 9.7.15.5.2 (matrix fragments of wgmma: accumulator D).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lego_mlir.hardware.limits import MMA_COLUMNS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.fragments.thread_fragment import PAIR, FragmentValue, as_values, is_undefined

_HALVES = 2


class Accumulator(Mapping[tuple[int, int], tuple[Any, Any]]):
    """The pairs of a thread's fragment, extracted from the structs on access.

    Each access extracts again, because an earlier extract need not dominate the insertion point.

    Args:
        blocks: the structs, by block of rows.
        columns: the tile's columns.
        kind: the element type.
    """

    def __init__(self, blocks: Sequence[Any], columns: int, kind: Any) -> None:
        self.blocks = tuple(blocks)
        self._columns = columns
        self._kind = kind

    def __getitem__(self, position: tuple[int, int]) -> tuple[Any, Any]:
        row, column = position
        block, half = divmod(row, _HALVES)
        first = (column * _HALVES + half) * PAIR
        return tuple(_number(self.blocks[block], self._kind, k) for k in (first, first + 1))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        rows, columns = _HALVES * len(self.blocks), self._columns // MMA_COLUMNS
        return ((row, column) for row in range(rows) for column in range(columns))

    def __len__(self) -> int:
        return _HALVES * len(self.blocks) * self._columns // MMA_COLUMNS


class AccumulatorRegisters:
    """The registers of a tile's accumulator, and the `LoopCarrier` of it.

    Args:
        blocks: the blocks of 64 rows of a warpgroup.
        columns: the tile's columns.
        element: the accumulator's element type in MLIR.
    """

    def __init__(self, blocks: int, columns: int, element: str) -> None:
        self.count = blocks
        self._columns = columns
        self._kind = ir.Type.parse(element)
        self.struct = ir.Type.parse(f"!llvm.struct<({', '.join([element] * (columns // 2))})>")

    def numbers(self, block: Any) -> list[Any]:
        """Extract the elements of a struct, in order."""
        kind = self._kind
        return [_number(block, kind, k) for k in range(self._columns // 2)]

    def flatten(self, fragment: FragmentValue) -> list[Any]:
        """Return the structs of a fragment."""
        if isinstance(fragment.pairs, Accumulator):
            return list(fragment.pairs.blocks)
        return [self._packed(fragment, block) for block in range(self.count)]

    def unflatten(self, values: Iterator[Any]) -> FragmentValue:
        """Return the fragment of the next structs."""
        blocks = [next(values) for _ in range(self.count)]
        return FragmentValue(Accumulator(blocks, self._columns, self._kind), (True, True))

    def _packed(self, fragment: FragmentValue, block: int) -> Any:
        value = ir.Operation.create("llvm.mlir.undef", results=[self.struct]).results[0]
        if is_undefined(fragment):
            return value
        numbers = [
            x
            for column in range(self._columns // MMA_COLUMNS)
            for half in range(_HALVES)
            for x in as_values(fragment.at(_HALVES * block + half, column))
        ]
        for k, number in enumerate(numbers):
            value = ir.Operation.create(
                "llvm.insertvalue",
                results=[self.struct],
                operands=[value, number],
                attributes={"position": ir.DenseI64ArrayAttr.get([k])},
            ).results[0]
        return value


def _number(block: Any, kind: Any, k: int) -> Any:
    return ir.Operation.create(
        "llvm.extractvalue",
        results=[kind],
        operands=[block],
        attributes={"position": ir.DenseI64ArrayAttr.get([k])},
    ).results[0]
