"""Index expressions: integers with floor division and modulo, their ranges, rules and proofs.

The rooms of this package: `nodes` (what an expression is), `construct` (how one is made),
`polynomial`, `rules` and `prover` (how it becomes short), `ranges`, `factor` and `cost` (what it
spans and costs), `evaluate`, `text` and `sympy_bridge` (what it means to others).
"""

from lego_mlir.index.construct import substitute
from lego_mlir.index.evaluate import evaluate
from lego_mlir.index.functions import isqrt, maximum, minimum, where
from lego_mlir.index.nodes import Expr, Int, Sym, symbols
from lego_mlir.index.ranges import bounds

__all__ = [
    "Expr",
    "Int",
    "Sym",
    "bounds",
    "evaluate",
    "isqrt",
    "maximum",
    "minimum",
    "substitute",
    "symbols",
    "where",
]
