"""The operands of an operation with a layout: indices, then the values of the layout's symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.index import Int
from lego_mlir.mlir import dialect
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import Layouts, symbols_of
from lego_mlir.mlir.lowering.derivations import located
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.lowering.indices.size_operands import SizeOperands


class LayoutOperands:
    """Reads the operands of the operations of one module.

    Args:
        layouts: reads and verifies its layouts.
        reader: reads values as expressions.
        sizes: reads the operands that give symbols their values.
        source: the module's text, for errors.
    """

    def __init__(
        self, layouts: Layouts, reader: IndexReader, sizes: SizeOperands, source: Source
    ) -> None:
        self._layouts = layouts
        self._reader = reader
        self._sizes = sizes
        self._source = source

    def note(self, op: Any) -> None:
        """Collect what an operation's layout implies of its size operands.

        Raises:
            LegoError: the operation should not be there any more.
        """
        layout = self._layouts.of(op)
        symbols = symbols_of(layout, dialect.layout_attribute_of(op))
        operands = list(op.operands)
        if op.name in (
            tiles.LOAD_PARTS,
            tiles.STORE_PARTS,
            tiles.COPY_PARTS,
            tiles.COPY_BOX,
            tiles.SEND_PARTS,
        ):
            operands = tiles.segments_of(op)[1]
        if symbols and len(operands) >= len(symbols):
            self._sizes.note(symbols, operands[-len(symbols) :])

    def indexed(
        self, op: Any, layout: Layout, operands: list[Any], whole: Sequence[int] = ()
    ) -> tuple[Layout, list[Any]]:
        """Return the layout and the index that the operands, indices and then symbols, give.

        The index of the dimensions in `whole` is `None`.

        Raises:
            LegoError: there are too few or too many operands, or the layout is no bijection.
        """
        dims = [n for k, n in enumerate(layout.dims) if k not in whole]
        indices, symbols = operands[: len(dims)], operands[len(dims) :]
        if len(indices) < len(dims):
            raise self._source.error(
                f"'{op.name}' got {_count(len(indices), 'index', 'indices')}, "
                f"its layout '{layout}' takes "
                f"{len(dims)} ({', '.join(str(n) for n in dims)})",
                op.location,
                hint="one index operand a dimension, then one a symbol of the layout",
            )
        bound = self.bound(op, layout, symbols)
        given = iter(indices)
        return bound, [
            None if k in whole else self._reader.read(next(given)) for k in range(layout.rank)
        ]

    def bound(self, op: Any, layout: Layout, operands: list[Any]) -> Layout:
        """Return the layout with its symbols replaced by the operands' values.

        Raises:
            LegoError: there is not one operand a symbol, or the layout is no bijection.
        """
        symbols = symbols_of(layout, dialect.layout_attribute_of(op))
        if len(operands) != len(symbols):
            names = ", ".join(s.name for s in symbols)
            raise self._source.error(
                f"'{op.name}' got {_count(len(operands), 'operand', 'operands')} for "
                + (f"the symbols {names} of" if symbols else "symbols, but there are none in")
                + f" its layout '{layout}'",
                op.location,
                hint="pass one index operand a symbol, or give it a value in lego.sizes",
            )
        if not symbols:
            return layout
        values = self._sizes.values(op, layout, symbols, operands)
        bound = located(self._source, op, lambda: layout.substitute(values))
        self._layouts.verified(bound, op.location)
        return bound

    def dim(self, op: Any, layout: Layout) -> Int:
        """Return the size of the dimension that a lego.dim asks for.

        Raises:
            LegoError: the layout has no such dimension.
        """
        number = dialect.dim_of(op)
        if not 0 <= number < layout.rank:
            raise self._source.error(
                f"'lego.dim': dimension {number} is not in [0, {layout.rank}), "
                f"the dimensions of '{layout}'",
                op.location,
                hint="dimensions count from 0",
            )
        return layout.dims[number]


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
