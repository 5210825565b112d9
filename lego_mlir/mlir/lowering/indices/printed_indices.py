"""Expressions become operations: at which operation, and whether 32 bits hold them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lego_mlir.index import Int
from lego_mlir.index.width import ascends, widest
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.emit.arith import Printer
from lego_mlir.mlir.emit.block_printers import BlockPrinters
from lego_mlir.mlir.lowering.accesses import Print
from lego_mlir.mlir.lowering.derivations import located
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader, bound_of

_MOST = 1 << 31
"""More than a signed 32-bit integer holds."""

_WITHOUT_INDICES = ("llvm.", "nvvm.", "math.")
"""Dialects whose operations neither take nor give indices."""

_FREQUENT = frozenset(
    [
        f"arith.{name}"
        for name in (
            *("addf", "subf", "mulf", "divf", "negf", "cmpf", "extf", "truncf"),
            *("maximumf", "minimumf", "constant", "bitcast"),
        )
    ]
    + [f"vector.{name}" for name in ("extract_strided_slice", "to_elements")]
)
"""Frequent operations that take none."""


class PrintedIndices:
    """The expressions that one module's lowering prints.

    Args:
        reader: has the values that stand for symbols, and learns what new values stand for.
        source: the module's text, for errors.

    Attributes:
        blocks: the printers of the module's blocks.
        fit_32_bits: whether every index so far is proven to fit a signed 32-bit integer.
    """

    def __init__(self, reader: IndexReader, source: Source) -> None:
        self._reader = reader
        self._source = source
        self.blocks = BlockPrinters(reader.values)
        self.fit_32_bits = True

    def printers(self, op: Any, limit: int = 0) -> tuple[Print, Print]:
        """Return what prints expressions at an operation: as values, and as conditions.

        Args:
            op: the operation.
            limit: the values are offsets that count only where they are below this number; 0 if
                nothing bounds them.
        """
        return self._checked(op, self.blocks.printer(op), limit)

    def _checked(self, op: Any, printer: Printer, limit: int = 0) -> tuple[Print, Print]:
        """Return a printer's functions with errors at `op`, and a check of the width."""

        def noting(make: Print, limit: int = 0) -> Print:
            def printed(x: Int) -> Any:
                self.note(x, limit)
                with op.location:
                    return located(self._source, op, lambda: make(x))

            return printed

        return noting(printer.print, limit), noting(printer.condition)

    def note(self, x: Int, limit: int = 0) -> None:
        """Take notice of an index that is computed, for the width of indices; as `printers`."""
        fits = _fits(x) or (0 < limit < _MOST and ascends(x, _MOST))
        self.fit_32_bits = self.fit_32_bits and fits

    def lasting(self, value: Any, x: Int) -> Any:
        """Return a value that remains: that of a lego operation is printed at the operation."""
        if isinstance(value, ir.BlockArgument) or not value.owner.name.startswith(dialect.PREFIX):
            return value
        owner = value.owner.operation
        return self._checked(owner, self.blocks.printer_without_reuse(owner))[0](x)

    def define(self, op: Any, xs: Iterable[Int]) -> None:
        """Set the expressions of an index operation's results; print those that others use."""
        for result, x in zip(op.results, xs, strict=True):
            self._reader.define(result, x)
            others = [
                (use.owner, use.operand_number)
                for use in result.uses
                if not use.owner.name.startswith(dialect.PREFIX)
            ]
            if others:
                value = self.printers(op)[0](x)
                self._reader.define(value, x)
                for user, number in others:
                    user.operation.operands[number] = value

    def bounded(self, op: Any, xs: Sequence[Int]) -> list[Int]:
        """Return an operation's results as symbols with the bounds that it states."""
        found: list[Int] = []
        for result, x in zip(op.results, xs, strict=True):
            bound = bound_of(result)
            if bound is None or isinstance(x, int):
                found.append(x)
            else:
                value = self.printers(op)[0](x)
                found.append(self._reader.symbol(value, "at", 0, bound - 1))
        return found

    def check_given(self, ops: Iterable[tuple[str, Any]]) -> None:
        """Check the width of every index that operations, with their names, had before printing."""
        values: set[Any] = set()  # what none of them uses is removed
        for name, op in ops:
            if name not in _FREQUENT and not name.startswith(_WITHOUT_INDICES):
                values.update(op.operands)
        index = ir.IndexType.get()
        indices = {self._reader.read(value) for value in values if value.type == index}
        self.fit_32_bits = self.fit_32_bits and all(map(_fits, indices))

    def set_bitwidth(self, module: Any) -> None:
        """Set a module's index width: 32 bits if they hold every index of its kernels, else 64."""
        bits = 32 if self.fit_32_bits else 64
        width = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), bits)
        module.operation.attributes[dialect.INDEX_BITWIDTH] = width


def _fits(x: Int) -> bool:
    """Return whether `x` and its intermediate results fit a signed 32-bit integer."""
    size = widest(x)
    return size is not None and size < _MOST
