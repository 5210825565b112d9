"""The MLIR side: the one door to the bindings, the lego dialect, and its lowering.

`SympyPrinter` prints SymPy expressions as operations; it imports SymPy when it is asked for.
"""

from typing import Any

__all__ = ["SympyPrinter"]


def __getattr__(name: str) -> Any:
    """Return the printer, importing it and SymPy first."""
    if name != "SympyPrinter":
        raise AttributeError(f"module 'lego_mlir.mlir' has no attribute '{name}'")
    from lego_mlir.mlir.emit.sympy_printer import SympyPrinter

    return SympyPrinter
