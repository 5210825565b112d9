"""Layouts on tiles of indices: the expression of a layout, computed for each element.

OrderBy(Row(tiles, 64)).apply(k, lg.arange(64))     64 k + (0, 1, ..., 63), of i32
OrderBy(Row(queries, 8)).inv(rows)                  rows // 8 and rows % 8
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.frontend.operators import Operand
from lego_mlir.frontend.trace import Trace
from lego_mlir.frontend.values import Value
from lego_mlir.index import Int, Sym
from lego_mlir.index.evaluate import Operators
from lego_mlir.index.nodes import Poly


def apply(layout: Layout, index: tuple[Operand, ...], trace: Trace) -> Any:
    """Return the offsets at an index, of whose entries one at least is a tile."""
    layout, values = _known(layout, trace)
    at = [Sym(f"at {k}", 0, _last(n)) for k, n in enumerate(layout.dims)]
    return _TileArithmetic(values | dict(zip(at, index, strict=True)))(layout.apply(*at))


def inv(layout: Layout, flat: Operand, trace: Trace) -> tuple[Any, ...]:
    """Return the index at each offset of a tile, one tile a dimension."""
    layout, values = _known(layout, trace)
    at = Sym("at", 0, _last(layout.size))
    arithmetic = _TileArithmetic({**values, at: flat})
    return tuple(arithmetic(n) for n in layout.inv(at))


def _known(layout: Layout, trace: Trace) -> tuple[Layout, dict[Sym, Any]]:
    """Return a layout and the values of its symbolic sizes."""
    from lego_mlir.mlir.layouts import layout_attribute, symbols_of

    layout, values = trace.sized(layout)
    symbols = symbols_of(layout, layout_attribute(layout))
    return layout, {s: Value(x, trace) for s, x in zip(symbols, values, strict=True)}


def _last(size: Int) -> int | None:
    return size - 1 if isinstance(size, int) else None


class _TileArithmetic(Operators):
    """Computes expressions of tiles and scalars.

    Args:
        values: those of the symbols.
    """

    def __init__(self, values: Mapping[Sym, Any]) -> None:
        super().__init__()
        self._values = values

    def symbol(self, x: Sym) -> Any:
        return self._values[x]

    def poly(self, x: Poly) -> Any:
        total: Any = x.constant
        for mono, coefficient in x.terms:
            term: Any = coefficient
            for atom, power in mono:
                for _ in range(power):
                    term = self(atom) if _is(term, 1) else self(atom) * term
            total = term if _is(total, 0) else term + total
        return total


def _is(x: Any, number: int) -> bool:
    return isinstance(x, int) and x == number
