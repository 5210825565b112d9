"""Layouts and index expressions in C and CUDA C++."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lego_mlir.algebra.layout import Layout
from lego_mlir.diagnostics import LegoError, printable
from lego_mlir.index import Int, Sym, construct
from lego_mlir.index.nodes import Expr
from lego_mlir.index.ranges import is_positive
from lego_mlir.printers.c_writer import HELPERS, CWriter
from lego_mlir.printers.layout_functions import LayoutFunctions, body, functions_of, takes_64_bits
from lego_mlir.printers.names import Names, fresh
from lego_mlir.printers.values import as_expression, is_list

_QUALIFIERS = {"c": "static inline", "cuda": "static __host__ __device__ __forceinline__"}


def to_c(
    x: Any, name: str = "layout", bits: int | None = None, names: Mapping[str, str] | None = None
) -> Any:
    """Return a layout as a C99 header, or an expression as a C expression.

    The header of a layout `A` has a struct `A_index` of an index, and the functions `A_apply`,
    `A_inv`, `A_dims`, `A_size`; `A_mask` if some index has no element, and `A_valid` if a size is
    symbolic: whether sizes are what the layout says of them. Their first parameters are the
    symbolic sizes.

    The variables of an expression are signed integers with the names of its symbols. What takes 64
    bits is computed with `long long`: it does unless 32 bits are proven to be enough.

    Args:
        x: a layout, an index expression, a SymPy expression, or several expressions.
        name: what the names in the header begin with.
        bits: 32 or 64, whatever is proven; None: as many as are.
        names: texts for the symbols of an expression, by name.

    Raises:
        LegoError: a name is none in C, a tile of offsets is given, or 64 bits are not enough.
    """
    return _printed("c", x, name, bits, names)


def to_cuda(
    x: Any, name: str = "layout", bits: int | None = None, names: Mapping[str, str] | None = None
) -> Any:
    """Return a layout as a CUDA header, or an expression as a CUDA C++ expression.

    As `to_c`; the functions are for the host and the device. `threadIdx.x` and its like may be
    names of symbols.

    Args:
        x: a layout, an index expression, a SymPy expression, or several expressions.
        name: what the names in the header begin with.
        bits: 32 or 64, whatever is proven; None: as many as are.
        names: texts for the symbols of an expression, by name.

    Raises:
        LegoError: as `to_c`.
    """
    return _printed("cuda", x, name, bits, names)


def c_helpers(language: str, helpers: set[str]) -> str:
    """Return the definitions of helper functions, which a file may hold several times."""
    text = ""
    for helper in sorted(helpers):
        guard = helper.upper()
        definition = HELPERS[helper].format(qualifiers=_QUALIFIERS[language])
        include = "#include <math.h>\n" if language == "c" else ""
        text += f"#ifndef {guard}\n#define {guard}\n{include}{definition}#endif\n\n"
    return text


def _printed(
    language: str, x: Any, name: str, bits: int | None, names: Mapping[str, str] | None
) -> Any:
    if isinstance(x, Layout):
        return _header(language, functions_of(x, name, language), x.text, bits)
    if is_list(x):
        return type(x)(_printed(language, e, name, bits, names) for e in x)
    expression = as_expression(x, language)
    is_wide = takes_64_bits((expression,), bits)
    casts = is_wide and not isinstance(expression, Sym)
    writer = CWriter(Names(language, names), None, is_wide, casts)
    return writer.write(expression)


def _header(language: str, of: LayoutFunctions, text: str, bits: int | None) -> str:
    """Return the header of a layout."""
    is_wide = of.is_wide(bits)
    kind = "long long" if is_wide else "int"
    names = partial(Names, language, None, [s.name for s in (*of.sizes, *of.index, of.offset)])

    def make(shared: frozenset[Expr]) -> CWriter:
        return CWriter(names(), shared, is_wide)

    index = f"{of.name}_index"
    if index in [s.name for s in of.sizes]:
        raise LegoError(
            f"the size '{index}' has the name of the struct of an index",
            hint="rename it, or give the layout another name",
        )
    fields = ", ".join(f"i{k}" for k in range(len(of.index)))
    function = _Functions(_QUALIFIERS[language], kind, make, of.sizes)
    functions = [
        function(kind, f"{of.name}_size", (), (of.size,)),
        function(index, f"{of.name}_dims", (), of.dims),
        function(kind, f"{of.name}_apply", of.index, (of.apply,)),
    ]
    if of.inv is not None:
        functions.append(function(index, f"{of.name}_inv", (of.offset,), of.inv))
    if of.mask is not None:
        functions.append(function("int", f"{of.name}_mask", of.index, (of.mask,)))
    if of.sizes:
        functions.append(function("int", f"{of.name}_valid", (), (validity(of),)))
    guard = f"LEGO_LAYOUT_{of.name}"
    return (
        f"// {printable(text)}\n#ifndef {guard}\n#define {guard}\n\n"
        + c_helpers(language, function.helpers)
        + f"typedef struct {{\n  {kind} {fields};\n}} {index};\n\n"
        + "\n".join(functions)
        + "\n#endif\n"
    )


def validity(of: LayoutFunctions) -> Int:
    """Return 1 where the symbolic sizes are positive and divided by what divides them, else 0.

    Its symbols have no ranges, so that nothing of it is taken for proven.
    """
    free = {s: Sym(s.name) for s in of.sizes}
    holds: Int = 1
    for s in of.sizes:
        holds = construct.where(construct.less(0, free[s]), holds, 0)
    for n in of.dims:
        if not is_positive(n):
            size = construct.substitute(n, free)
            holds = construct.where(holds, construct.less(0, size), 0)
    for s, divisor in of.facts:
        rest = construct.mod(free[s], construct.substitute(divisor, free))
        holds = construct.where(holds, construct.where(rest, 0, 1), 0)
    return holds


class _Functions:
    """Writes functions of a layout, and notes the helpers that they call."""

    def __init__(
        self,
        qualifiers: str,
        kind: str,
        make: Callable[[frozenset[Expr]], CWriter],
        sizes: Sequence[Sym],
    ) -> None:
        self._qualifiers, self._kind, self._make = qualifiers, kind, make
        self._sizes = tuple(sizes)
        self.helpers: set[str] = set()

    def __call__(
        self, result: str, name: str, parameters: Sequence[Sym], results: Sequence[Int]
    ) -> str:
        """Return a function of the sizes and more parameters; several results are a struct."""
        every = (*self._sizes, *parameters)
        declared = ", ".join(f"{self._kind} {s.name}" for s in every) or "void"
        lines, texts, helpers = body(self._make, results)
        self.helpers |= helpers
        used = " ".join([*lines, *texts])
        unused = [f"(void){s.name};" for s in every if not _mentions(used, s.name)]
        if result.endswith("_index"):
            variable = fresh("result", [s.name for s in every])
            last = [f"{result} {variable} = {{{', '.join(texts)}}};", f"return {variable};"]
        else:
            last = [f"return {texts[0]};"]
        inner = "".join(f"  {line}\n" for line in [*unused, *lines, *last])
        return f"{self._qualifiers} {result} {name}({declared}) {{\n{inner}}}\n"


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None
