"""Printers of index expressions for each operation of a module, which share what is printed.

Operations of one block see what was printed for those before them, and so do the blocks nested
between them. An expression that several operations need is therefore printed once. This requires
that operations are lowered in program order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lego_mlir.index import Sym
from lego_mlir.mlir.emit.arith import Printed, Printer
from lego_mlir.mlir.scopes import KERNELS, Scope, scope_of


@dataclass(frozen=True, slots=True)
class _Block:
    """What is known at the operations of one block.

    Attributes:
        scope: their kernel and loops.
        printed: the expressions that they may use.
        levels: for each symbol the number of loops around its value's definition.
    """

    scope: Scope
    printed: Printed
    levels: dict[Sym, int] = field(default_factory=dict)


class BlockPrinters:
    """Printers of one module's operations, none of which may be erased or moved meanwhile.

    Args:
        values: the SSA value of each symbol.
    """

    def __init__(self, values: Mapping[Sym, Any]) -> None:
        self._values = values
        self._blocks: dict[Any, _Block] = {}

    def scope(self, op: Any) -> Scope:
        """Return the scope of an operation."""
        return self._block(op).scope

    def printer(self, op: Any) -> Printer:
        """Return what prints before an operation; it hoists out of loops and reuses values."""
        block = self._block(op)
        return self._printer(op, block, block.printed)

    def printer_without_reuse(self, op: Any) -> Printer:
        """Return what prints before an operation, reusing nothing: later ones may have printed."""
        return self._printer(op, self._block(op), Printed())

    def _printer(self, op: Any, block: _Block, printed: Printed) -> Printer:
        def level(symbol: Sym) -> int:
            if symbol not in block.levels:
                block.levels[symbol] = block.scope.level(self._values[symbol])
            return block.levels[symbol]

        return Printer(self._values, block.scope.points(op), level, printed)

    def _block(self, op: Any) -> _Block:
        key = op.operation.block
        if key not in self._blocks:
            outer = op.parent
            is_inner = outer is not None and outer.name not in _BODIES
            seen = self._block(outer).printed.copy() if is_inner else Printed()
            self._blocks[key] = _Block(scope_of(op), seen)
        return self._blocks[key]


_BODIES = (*KERNELS, "func.func", "builtin.module", "gpu.module")
"""Expressions that are printed outside of these are not reused inside."""
