"""Index values of a kernel as numbers: what an SSA value is for given ids and iterations of loops.

Layout operations compute what their layouts say, arithmetic is done by NumPy. What is given stands
for launch ids and loop variables; a value that depends on anything else has no number here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.lowering.indices.permutation_functions import evaluate

LayoutOf = Callable[[Any], Layout]
"""The layout of a lego operation."""

CASTS = ("arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi", "arith.trunci")
_LOGIC: dict[str, Callable[[Any, Any], Any]] = {
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
}


class Unknown(Exception):
    """A value depends on what has no number here."""


class Evaluator:
    """Computes values of one kernel, each once.

    Args:
        values: the numbers of values, ints or arrays of one shape.
        layout_of: the layout of a lego operation.
        source: the module's text, in which errors are shown.
    """

    def __init__(self, values: Mapping[Any, Any], layout_of: LayoutOf, source: Source) -> None:
        self._known: dict[Any, Any] = dict(values)
        self._layout_of = layout_of
        self._source = source

    def __call__(self, value: Any) -> Any:
        """Return the number of a value, or the array of its numbers.

        Raises:
            Unknown: it depends on what is not given.
        """
        if value not in self._known:
            if isinstance(value, ir.BlockArgument):
                raise Unknown
            op = value.owner
            try:
                found = self._results(op)
            except (LegoError, ArithmeticError, TypeError, ValueError):
                raise Unknown from None
            self._known.update(zip(op.results, found, strict=True))
        return self._known[value]

    def _results(self, op: Any) -> tuple[Any, ...]:
        if len(op.regions):
            raise Unknown
        if op.name.startswith(dialect.PREFIX):
            return self._of_layout(op)
        operands = [self(x) for x in op.operands]
        if op.name in _LOGIC:
            return (_LOGIC[op.name](*operands),)
        if op.name in CASTS:
            return (operands[0] * np.int64(1) if np.ndim(operands[0]) else int(operands[0]),)
        return (evaluate(op, operands, self._source),)

    def _of_layout(self, op: Any) -> tuple[Any, ...]:
        if op.name == dialect.TABLE:
            numbers = np.array(dialect.table_values(op))
            return (numbers[self(op.operands[0])],)
        if op.name not in (dialect.APPLY, dialect.INV, dialect.MASK, dialect.SIZE, dialect.DIM):
            raise Unknown
        layout = self._layout_of(op)
        if layout.symbols:
            raise Unknown
        operands = [self(x) for x in op.operands]
        match op.name:
            case dialect.APPLY:
                return (layout.apply(*operands),)
            case dialect.MASK:
                return (layout.mask(*operands),)
            case dialect.INV:
                return tuple(layout.inv(operands[0]))
            case dialect.SIZE:
                return (layout.size,)
        return (layout.dims[dialect.dim_of(op)],)
