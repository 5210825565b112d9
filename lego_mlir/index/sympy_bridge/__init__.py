"""SymPy expressions in and out.

Index expressions meet SymPy at the border. `to_sympy` gives an expression of SymPy's own nodes and
of the functions in `functions`, which evaluate on integers, print, lambdify and differentiate.
`from_sympy` takes any integer expression of SymPy's to normal form: it is `IndexPrinter`, one of
SymPy's own printers. Between the two nothing runs through SymPy: its general simplifiers are what
peers lost their compile time to, and its import alone takes longer than a whole compilation.
"""

from lego_mlir.index.sympy_bridge.exporting import to_sympy
from lego_mlir.index.sympy_bridge.functions import FloorDiv, ISqrt, Less, Mod, Where, Xor
from lego_mlir.index.sympy_bridge.index_printer import IndexPrinter, from_sympy
from lego_mlir.index.sympy_bridge.symbols import stated_divisors, symbol

__all__ = [
    "FloorDiv",
    "ISqrt",
    "IndexPrinter",
    "Less",
    "Mod",
    "Where",
    "Xor",
    "from_sympy",
    "stated_divisors",
    "symbol",
    "to_sympy",
]
