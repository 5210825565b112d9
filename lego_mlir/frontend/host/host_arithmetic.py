"""Sizes as values of the host function, in the operations that a launch can evaluate.

The compiler reads them back as the expressions of grids and parameters. It has these operations for
them: additions, multiplications, divisions and remainders that round down, minima and maxima.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lego_mlir.frontend.host.argument_types import Parameter, TensorType
from lego_mlir.index import Int, Sym
from lego_mlir.index.fold import Algebra
from lego_mlir.index.nodes import FloorDiv, Max, Min, Mod, Mul, Poly
from lego_mlir.mlir.bindings import ir


class HostArithmetic(Algebra[Any]):
    """Makes index values of expressions at the current insertion point.

    Args:
        values: those of the symbols, by name.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__()
        self._values = values

    def constant(self, x: int) -> Any:
        return _constant(x)

    def symbol(self, x: Sym) -> Any:
        return self._values[x.name]

    def poly(self, x: Poly) -> Any:
        total = None if x.constant == 0 else _constant(x.constant)
        for mono, coefficient in x.terms:
            term = None if coefficient == 1 else _constant(coefficient)
            for atom, power in mono:
                for _ in range(power):
                    term = self(atom) if term is None else _made("arith.muli", term, self(atom))
            total = term if total is None else _made("arith.addi", term, total)
        return total

    def mul(self, x: Mul) -> Any:
        return self._of_two("arith.muli", x.a, x.b)

    def floordiv(self, x: FloorDiv) -> Any:
        return self._of_two("arith.floordivsi", x.num, x.den)

    def mod(self, x: Mod) -> Any:
        quotient = self._of_two("arith.floordivsi", x.num, x.den)  # remsi rounds towards zero
        return _made("arith.subi", self(x.num), _made("arith.muli", quotient, self(x.den)))

    def minimum(self, x: Min) -> Any:
        return self._of_two("arith.minsi", x.a, x.b)

    def maximum(self, x: Max) -> Any:
        return self._of_two("arith.maxsi", x.a, x.b)

    def _of_two(self, name: str, a: Int, b: Int) -> Any:
        return _made(name, self(a), self(b))


def host_sizes(parameters: Mapping[str, Parameter], buffers: Mapping[str, Any]) -> dict[Sym, Any]:
    """Return the sizes that only the launch knows, as values of the host function.

    Args:
        parameters: the types of its arguments by name.
        buffers: their memrefs.
    """
    found: dict[Sym, Any] = {}
    for name, kind in parameters.items():
        if not isinstance(kind, TensorType):
            continue
        for dim, n in enumerate(kind.shape):
            if isinstance(n, Sym) and n not in found:
                operands = [buffers[name], _constant(dim)]
                index = ir.IndexType.get()
                found[n] = ir.Operation.create("memref.dim", [index], operands).result
    return found


def _constant(x: int) -> Any:
    index = ir.IndexType.get()
    attributes = {"value": ir.IntegerAttr.get(index, x)}
    return ir.Operation.create("arith.constant", [index], attributes=attributes).result


def _made(name: str, a: Any, b: Any) -> Any:
    return ir.Operation.create(name, [ir.IndexType.get()], [a, b]).result
