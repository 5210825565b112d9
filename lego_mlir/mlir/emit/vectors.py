"""Index expressions of vectors as `arith` operations, element by element.

The values of symbols are scalars or vectors of one shape. What depends on scalars alone is computed
once, as a scalar, and broadcast where it meets a vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.index.nodes import ISqrt, Mono, Poly, Sym
from lego_mlir.index.structure import symbols
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit import affine
from lego_mlir.mlir.emit.arith import Printer, like


class VectorPrinter(Printer):
    """Prints expressions of scalars and vectors at the current insertion point.

    Args:
        values: the SSA value of each symbol: of type index, or a vector of index.

    Raises:
        LegoError: the vectors differ in shape.
    """

    def __init__(self, values: Mapping[Sym, Any]) -> None:
        super().__init__(values)
        vectors = {s: v.type for s, v in values.items() if isinstance(v.type, ir.VectorType)}
        self._vectors = frozenset(vectors)
        if len({tuple(kind.shape) for kind in vectors.values()}) > 1:
            shown = ", ".join(f"{s.name}: {kind}" for s, kind in vectors.items())
            raise LegoError(f"the vectors of an expression differ in shape: {shown}")

    def build(self, op: Any, *operands: Any) -> Any:
        shaped = [x.type for x in operands if isinstance(x.type, ir.VectorType)]
        if not shaped:
            return super().build(op, *operands)
        return super().build(op, *(_broadcast(x, shaped[0]) for x in operands))

    def _affine(self, part: Poly, level: int) -> Any:
        """Build a sum; one of vectors is no `affine.apply`, whose operands are scalars."""
        if not any(self._is_vector(mono) for mono, _ in part.terms):
            return super()._affine(part, level)
        scalars = [term for term in part.terms if not self._is_vector(term[0])]
        vectors = Poly(0, tuple(term for term in part.terms if self._is_vector(term[0])))
        total = self._factored(vectors)
        if not scalars and not part.constant:
            return total
        operands = [(c, self.print(mono[0][0])) for mono, c in scalars]
        rest = affine.apply(part.constant, operands) if operands else self.print(part.constant)
        return self.build("arith.addi", total, rest)

    def _is_vector(self, mono: Mono) -> bool:
        return any(symbols(atom) & self._vectors for atom, _ in mono)

    def isqrt(self, x: ISqrt) -> Any:
        kind = self.print(x.x).type
        if isinstance(kind, ir.VectorType) and kind.rank != 1:
            raise LegoError(
                f"the square root of a {kind} cannot be built: LLVM has it for one dimension",
                hint="flatten the vector by vector.shape_cast",
            )
        return super().isqrt(x)


def _broadcast(x: Any, kind: Any) -> Any:
    """Return `x` as a vector of the shape of `kind`."""
    if isinstance(x.type, ir.VectorType):
        return x
    result = like(kind, x.type)
    return ir.Operation.create("vector.broadcast", results=[result], operands=[x]).result
