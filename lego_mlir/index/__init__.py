"""Index expressions: integers with floor division and modulo, their ranges, rules and proofs.

Six modules are one unit, the recursive core. They call one another:

    nodes         the operators call the constructors
    construct     `//` and `%` call the rules, sums and products call polynomial, comparisons the
                  prover; each returns the normal form
    polynomial    cancels terms, and calls the constructors for what replaces them
    rules         one identity each; its condition calls the prover, its result the constructors
    ranges        the interval of a node from those of its operands; calls none of the others
    proofs        prover: intervals, then bounds of symbols by the constructors, then Z3

The recursion ends. Ranges and Z3 terms recurse into operands only. A rule applies only where its
result has fewer or smaller divisions: a divisor or a dividend loses a factor or a term. A
cancellation leaves fewer terms. A proof eliminates at most `prover._DEPTH` atoms, one inside
another, and calls Z3 with a step limit. Beyond these, `work` counts every step against the limit
`index_steps`. Because the modules need each other, `nodes` imports `construct` after its classes.

The core expands products of sums and has no modes. `operands` are expressions that carry a second,
unexpanded form through the operators and `functions`.

Above the core stand `extraction/` (the cheapest of several forms, and what a form takes), and
`fold`, with its interpretations `evaluate`, `text` and `proofs.solver`.
`functions` are what permutations may call, `sympy_bridge` converts from and to SymPy.
"""

from lego_mlir.index.construct import substitute
from lego_mlir.index.evaluate import evaluate
from lego_mlir.index.functions import isqrt, maximum, minimum, where
from lego_mlir.index.nodes import Expr, Int, Sym
from lego_mlir.index.ranges import bounds
from lego_mlir.index.structure import symbols

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
