"""Layouts and index expressions in Python and NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lego_mlir.algebra.layout import Layout
from lego_mlir.diagnostics import printable
from lego_mlir.index import Int, Sym
from lego_mlir.index.nodes import Expr
from lego_mlir.printers.layout_functions import LayoutFunctions, body, functions_of, takes_64_bits
from lego_mlir.printers.names import Names
from lego_mlir.printers.python_writer import HELPERS, NumpyWriter, PythonWriter, TritonWriter
from lego_mlir.printers.values import as_expression, is_list

_IMPORTS = {
    "python": "import math\n",
    "numpy": "import numpy as np\n",
    "triton": "import triton\nimport triton.language as tl\n",
}
WRITERS = {"python": PythonWriter, "numpy": NumpyWriter, "triton": TritonWriter}


def to_python(x: Any, name: str = "layout", names: Mapping[str, str] | None = None) -> Any:
    """Return a layout as a Python module, or an expression as one of Python's integers.

    The module of a layout `A` has the functions `A_apply`, `A_inv`, `A_dims`, `A_size`, and
    `A_mask` if some index has no element. Their first parameters are the symbolic sizes.

    Args:
        x: a layout, an index expression, a SymPy expression, or several expressions.
        name: what the names of the functions begin with.
        names: texts for the symbols of an expression, by name.

    Raises:
        LegoError: a name is none in Python, or a tile of offsets is given.
    """
    return printed("python", x, name, names)


def to_numpy(x: Any, name: str = "layout", names: Mapping[str, str] | None = None) -> Any:
    """Return a layout or an expression as `to_python` does, on NumPy arrays of int64.

    Args:
        x: a layout, an index expression, a SymPy expression, or several expressions.
        name: what the names of the functions begin with.
        names: texts for the symbols of an expression, by name.

    Raises:
        LegoError: as `to_python`, or 64 bits are not enough.
    """
    return printed("numpy", x, name, names)


def printed(language: str, x: Any, name: str, names: Mapping[str, str] | None) -> Any:
    """Return a layout as a module, or an expression as text, in one of Python's languages."""
    if isinstance(x, Layout):
        return _module(language, functions_of(x, name, language), x.text)
    if is_list(x):
        return type(x)(printed(language, e, name, names) for e in x)
    expression = as_expression(x, language)
    if language != "python":
        takes_64_bits((expression,), None)
    return WRITERS[language](Names(language, names)).write(expression)


def helper_text(language: str, helpers: set[str]) -> str:
    """Return the definitions of helper functions."""
    return "".join(f"\n\n{HELPERS[language, helper]}" for helper in sorted(helpers))


def _module(language: str, of: LayoutFunctions, text: str) -> str:
    """Return the functions of a layout as a module."""
    if language != "python":
        of.is_wide(None)
    taken = [s.name for s in (*of.sizes, *of.index, of.offset)]
    names = partial(Names, language, None, taken)

    def make(shared: frozenset[Expr]) -> PythonWriter:
        return WRITERS[language](names(), shared)

    helpers: set[str] = set()

    def function(
        name: str, parameters: Sequence[Sym], results: Sequence[Int], is_tuple: bool
    ) -> str:
        lines, texts, called = body(make, results)
        helpers.update(called)
        result = f"({', '.join(texts)}{',' * (len(texts) == 1)})" if is_tuple else texts[0]
        declared = ", ".join(s.name for s in (*of.sizes, *parameters))
        inner = "".join(f"    {line}\n" for line in [*lines, f"return {result}"])
        decorator = "@triton.jit\n" if language == "triton" else ""
        return f"\n\n{decorator}def {of.name}_{name}({declared}):\n{inner}"

    functions = function("apply", of.index, (of.apply,), False)
    if of.inv is not None:
        functions += function("inv", (of.offset,), of.inv, True)
    functions += function("dims", (), of.dims, True)
    functions += function("size", (), (of.size,), False)
    if of.mask is not None:
        functions += function("mask", of.index, (of.mask,), False)
    imports = _IMPORTS[language] if language != "python" or "math." in functions else ""
    return f"# {printable(text)}\n{imports}{helper_text(language, helpers)}{functions}"
