"""Where index expressions are printed, and what is printed there already.

Operations of one block see what was printed for those before them, as do the blocks that begin
between: so an expression is printed once where several operations need it. For that, operations
are lowered in the order in which they stand.
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
    """What operations of one block have in common.

    Attributes:
        scope: where they stand.
        printed: what they may use.
        levels: in how many of the loops the value of each symbol is defined.
    """

    scope: Scope
    printed: Printed
    levels: dict[Sym, int] = field(default_factory=dict)


class Places:
    """The places of one module's operations, as long as none of these is erased or moved.

    Args:
        values: the SSA value of each symbol.
    """

    def __init__(self, values: Mapping[Sym, Any]) -> None:
        self._values = values
        self._blocks: dict[Any, _Block] = {}

    def scope(self, op: Any) -> Scope:
        """The scope that an operation stands in."""
        return self._block(op).scope

    def printer(self, op: Any) -> Printer:
        """What prints before an operation, after those before it: outside of loops where it can."""
        block = self._block(op)
        return self._printer(op, block, block.printed)

    def printer_of_old(self, op: Any) -> Printer:
        """What prints before an operation when others behind it have printed too."""
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
"""What is printed outside of these stays there."""
