"""Modules after their tiles are placed, for tests of what was chosen."""

from __future__ import annotations

from typing import Any

from lego_mlir.analysis.distributed import Conversion, DistributedLayout, plan_conversion
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.dots import matrix_instructions
from lego_mlir.mlir.tile_ir.types import bytes_of, element_of, has_tiles, is_tile, layout_of


class Placed:
    """A module whose tiles are placed.

    Args:
        text: the module.
    """

    def __init__(self, text: str) -> None:
        compilation = Compilation(Source("tiles.mlir", text), Options())
        self.module = compilation.placed
        self.text = str(self.module)
        self._target = compilation.options.target

    def operations(self, name: str) -> list[Any]:
        """Return the operations of a name that have tiles, in order."""
        every = operations_in(self.module.operation)
        return [op for op in every if op.name == name and has_tiles(op)]

    def layouts(self, name: str) -> list[DistributedLayout]:
        """Return the layout of the first tile of each operation of a name: results come first."""
        found = []
        for op in self.operations(name):
            tile = next(v for v in (*op.results, *op.operands) if is_tile(v))
            layout = layout_of(tile)
            assert layout is not None
            found.append(layout)
        return found

    def conversions(self) -> list[Conversion]:
        """Return the plans of the conversions, in order."""
        found = []
        for op in self.operations(tiles.CONVERT):
            before, after = layout_of(op.operands[0]), layout_of(op.results[0])
            assert before is not None
            assert after is not None
            size = bytes_of(element_of(op.results[0]))
            found.append(plan_conversion(before, after, size, matrix_instructions(self._target)))
        return found
