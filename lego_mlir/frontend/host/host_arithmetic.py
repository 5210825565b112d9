"""Sizes as values of the host function, in the operations that a launch can evaluate.

The compiler reads them back as the expressions of grids and parameters. It has these operations for
them: additions, multiplications, divisions and remainders that round down, minima and maxima.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lego_mlir.algebra.sizes import cofactor
from lego_mlir.frontend.host.argument_types import Parameter, TensorType
from lego_mlir.index import Int, Sym, construct, symbols
from lego_mlir.index.fold import Algebra
from lego_mlir.index.nodes import Bits, FloorDiv, Max, Min, Mod, Mul, Poly
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

    def bits(self, x: Bits) -> Any:
        return self(construct.bits(x.x, x.mask))

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
    for source in size_sources(parameters):
        operands = [buffers[source.parameter], _constant(source.dim)]
        size = ir.Operation.create("memref.dim", [ir.IndexType.get()], operands).result
        if source.cofactor != 1:
            known = {s.name: value for s, value in found.items()}
            size = _made("arith.floordivsi", size, HostArithmetic(known)(source.cofactor))
        found[source.symbol] = size
    return found


class SizeSource(NamedTuple):
    """What tells a size that only the launch knows: the size of a buffer, divided by others.

    Attributes:
        symbol: the size.
        parameter: the tensor.
        dim: the dimension of its buffer.
        cofactor: what that dimension is besides the size; it has sizes of earlier sources.
    """

    symbol: Sym
    parameter: str
    dim: int
    cofactor: Int


def size_sources(parameters: Mapping[str, Parameter]) -> list[SizeSource]:
    """Return what tells the sizes that only the launch knows, as far as they are told.

    Args:
        parameters: the types of a host function's arguments by name.
    """
    sizes = [
        (name, dim, n)
        for name, kind in parameters.items()
        if isinstance(kind, TensorType)
        for dim, n in enumerate(kind.shape)
        if not isinstance(n, int)
    ]
    sizes.sort(key=lambda size: not isinstance(size[2], Sym))  # what needs no division first
    found: dict[Sym, SizeSource] = {}
    count = -1
    while len(found) > count:  # one may follow from another that did
        count = len(found)
        for name, dim, n in sizes:
            unknown = [s for s in symbols(n) if s not in found]
            factor = cofactor(n, unknown[0]) if len(unknown) == 1 else None
            if factor is not None:
                found[unknown[0]] = SizeSource(unknown[0], name, dim, factor)
    return list(found.values())


def _constant(x: int) -> Any:
    index = ir.IndexType.get()
    attributes = {"value": ir.IntegerAttr.get(index, x)}
    return ir.Operation.create("arith.constant", [index], attributes=attributes).result


def _made(name: str, a: Any, b: Any) -> Any:
    return ir.Operation.create(name, [ir.IndexType.get()], [a, b]).result
