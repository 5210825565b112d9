"""The operands that give a layout's symbols their values, and the facts that layouts imply.

`M/128` in a layout says that 128 divides M. The fact belongs to the value passed for M, so every
layout that gets the value shares it, and a loop that runs to the value knows it too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, Sym, bounds, polynomial, substitute
from lego_mlir.index.ranges import is_positive
from lego_mlir.index.structure import symbols
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.launch_sizes.promises import Promised, promised
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader

Tied = Mapping[str, Any]
"""The operand of each symbol, by its name."""


class SizeOperands:
    """All operands of one module that are sizes of layouts.

    What a layout says of a value that nothing else is known of is collected first, by `note`, and
    passed on when the reader meets the value, by `leaf`.

    Args:
        reader: reads the operands.
        source: the module's text, in which errors are shown.
        print_value: a lasting value for an operand that reads as an expression.
        see_to: called for what a layout says of an operand, with the operation, the operand, the
            symbol's name, its divisors and the layout.
    """

    def __init__(
        self,
        reader: IndexReader,
        source: Source,
        print_value: Callable[[Any, Int], Any],
        see_to: Callable[[Any, Any, str, Sequence[Int], Layout], None],
    ) -> None:
        self._reader = reader
        self._print_value = print_value
        self._source = source
        self._see_to = see_to
        self._noted: dict[Any, tuple[str, list[tuple[Int, Tied]]]] = {}
        self._made: dict[tuple[Any, frozenset[Int]], Sym] = {}
        self._open: set[Any] = set()

    def note(self, layout_symbols: Sequence[Sym], operands: Sequence[Any]) -> None:
        """Record what one operation's layout implies of its operands."""
        tied = {s.name: operand for s, operand in zip(layout_symbols, operands, strict=True)}
        for s, operand in zip(layout_symbols, operands, strict=True):
            _, facts = self._noted.setdefault(operand, (s.name, []))
            facts.extend((divisor, tied) for divisor in s.divisors)

    def leaf(self, value: Any) -> Sym | None:
        """Return the symbol of a value that layouts imply facts about, else `None`."""
        if value not in self._noted:
            return None
        name, facts = self._noted[value]
        self._open.add(value)
        resolved = [self._resolved(divisor, tied) for divisor, tied in facts]
        self._open.discard(value)
        divisors = frozenset(d for d in resolved if d is not None)
        known = promised(value) or Promised()
        divisors |= known.divisors
        return self._reader.symbol(value, name, max(1, known.low), known.high, divisors)

    def values(
        self, op: Any, layout: Layout, layout_symbols: Sequence[Sym], operands: Sequence[Any]
    ) -> dict[Sym, Int]:
        """Return the expression that each symbol of an operation's layout stands for.

        Raises:
            LegoError: a constant that what the layout says does not hold for.
        """
        tied = {s.name: operand for s, operand in zip(layout_symbols, operands, strict=True)}
        found: dict[Sym, Int] = {}
        for s, operand in zip(layout_symbols, operands, strict=True):
            resolved = (self._resolved(divisor, tied) for divisor in s.divisors)
            divisors = tuple(d for d in resolved if d is not None)
            found[s] = self._value(operand, s.name, frozenset(divisors), op, layout)
            self._see_to(op, operand, s.name, divisors, layout)
        return found

    def _resolved(self, divisor: Int, tied: Tied) -> Int | None:
        """Return a divisor in terms of operands; `None` if it is cyclic (M/K, K/M)."""
        needed = symbols(divisor)
        if any(s.name not in tied or not self._readable(tied[s.name]) for s in needed):
            return None
        return substitute(divisor, {s: self._reader.read(tied[s.name]) for s in needed})

    def _readable(self, operand: Any) -> bool:
        return operand not in self._open and self._reader.is_readable(operand)

    def _value(
        self, operand: Any, name: str, divisors: frozenset[Int], op: Any, layout: Layout
    ) -> Int:
        x = self._reader.read(operand)
        for d in divisors:
            if isinstance(x, int) and isinstance(d, int) and x % d:
                raise self._violation(name, x, d, op, layout)
        if is_positive(x) and all(polynomial.divides(d, x) for d in divisors):
            return x
        if isinstance(x, int) and x < 1:
            return x  # which the layout refuses
        key = (operand, divisors)
        if key not in self._made:
            lo, hi = bounds(x)
            if isinstance(x, Sym):
                divisors |= x.divisors
            value = self._print_value(operand, x)
            self._made[key] = self._reader.symbol(value, name, max(1, lo or 1), hi, divisors)
        return self._made[key]

    def _violation(self, name: str, x: int, d: int, op: Any, layout: Layout) -> LegoError:
        return self._source.error(
            f"'{op.name}': {name} is {x} here, but its layout '{layout}' says that {d} divides it",
            op.location,
            hint=f"'{name}/{d}' is exact; '{name}//{d}' rounds down",
        )
