"""Templates of source text, with layouts in the holes.

A template is the source of a kernel with expressions in `{{ }}`, as the LEGO paper writes them
(section 5):

    {% set A = OrderBy(Row(M, K)).TileBy([M/BM, K/BK], [BM, BK]) %}
    a = tl.load(a_ptr + {{ A["pid_m", "k", :, :] }})

What stands in a hole is printed in the language of the file, in parentheses where it is more than a
name. Names in quotes are variables of the program, with the range of their dimension.

A template is data: `template_sandbox` says what it can do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import TracebackType
from typing import Any

from lego_mlir import algebra
from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.index import Expr, Int, Sym
from lego_mlir.index.work import measured
from lego_mlir.limits import current, limit_error
from lego_mlir.printers.c import c_helpers, to_c, to_cuda
from lego_mlir.printers.c_writer import HELPERS as C_HELPERS
from lego_mlir.printers.cute import CuteLayout, to_cute
from lego_mlir.printers.python import helper_text, to_numpy, to_python
from lego_mlir.printers.python_writer import HELPERS as PYTHON_HELPERS
from lego_mlir.printers.triton import TritonTile, to_triton
from lego_mlir.printers.values import is_list

LANGUAGES: dict[str, Callable[..., Any]] = {
    "c": to_c,
    "cuda": to_cuda,
    "numpy": to_numpy,
    "python": to_python,
    "triton": to_triton,
}
"""The languages that templates are printed in, and their printers."""

_SUFFIXES = {".c": "c", ".h": "c", ".cu": "cuda", ".cuh": "cuda", ".py": "triton"}
_TEMPLATE_SUFFIXES = (".j2", ".jinja", ".jinja2")

_ALGEBRA = (
    "Col GenP GroupBy OrderBy RegP Row TileBy TileOrderBy antidiagonal block_cyclic bricks ceildiv "
    "hilbert inverse morton reverse swizzle tma_swizzle"
)


def language_of(file: str) -> str:
    """Return the language of a template by the name of its file: `kernel.cu.j2` is CUDA.

    Raises:
        LegoError: the name tells none.
    """
    path = PurePath(file)
    if path.suffix in _TEMPLATE_SUFFIXES:
        path = path.with_suffix("")
    if path.suffix not in _SUFFIXES:
        known = ", ".join(f"{suffix}.j2" for suffix in _SUFFIXES)
        raise LegoError(
            f"the language of the template is not known by its name '{file}'",
            hint=f"name it *{known}, or give --language, one of {', '.join(LANGUAGES)}",
        )
    return _SUFFIXES[path.suffix]


def render(
    text: str,
    values: Mapping[str, int | str] | None = None,
    language: str = "cuda",
    file: str = "<template>",
) -> str:
    """Return the text of a template with its holes filled.

    Args:
        text: the template.
        values: numbers and words that its expressions may name.
        language: that of the text: c, cuda, triton, python or numpy.
        file: its name in errors.

    Raises:
        LegoError: with the line of the template; or Jinja is not installed.
    """
    if language not in LANGUAGES:
        raise LegoError(
            f"there is no language '{language}'", hint=f"languages: {', '.join(LANGUAGES)}"
        )
    try:
        import jinja2
    except ImportError:
        raise LegoError(
            "templates need Jinja, which is not installed",
            hint="pip install 'lego-mlir[templates]'",
        ) from None
    from lego_mlir.printers.template_sandbox import Sandbox, describe

    environment = Sandbox(_names(language), lambda value: _hole(language, value))
    most = current().template_bytes
    pieces: list[str] = []
    try:
        with measured():
            code = environment.compile(environment.parsed(text), filename=file)
            template = jinja2.Template.from_code(environment, code, environment.globals)
            for piece in template.generate(**dict(values or {})):
                most -= len(piece)
                if most < 0:
                    raise limit_error("template_bytes", "the template makes too long a text")
                pieces.append(piece)
    except Exception as e:
        line = getattr(e, "lineno", None) or _line(e.__traceback__, file)
        if isinstance(e, LegoError):  # of a layout's text, the line of the template says more
            at = Location(file, line)
            raise LegoError(e.message, location=at, hint=e.hint, source=text) from None
        known = describe(e)
        if known is None:
            raise
        message, hint = known
        raise LegoError(message, location=Location(file, line), hint=hint, source=text) from None
    return "".join(pieces)


def _line(traceback: TracebackType | None, file: str) -> int:
    """Return the template's line that was rendered last; 0 if none was."""
    line = 0
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _names(language: str) -> dict[str, Any]:
    """Return what a template's expressions may name."""

    def layout(text: str, **sizes: int) -> Layout:
        if not isinstance(text, str):
            raise LegoError(f"a layout is a text in quotes, not {text!r}")
        return algebra.parse_layout(text, sizes)

    def size(name: str, *multiple_of: Int) -> Sym:
        return algebra.size_symbol(name, multiple_of)

    def var(name: str, lo: int | None = 0, hi: Int | None = None) -> Sym:
        return Sym(name, lo, hi)

    def header(of: Layout, name: str) -> str:
        if not isinstance(of, Layout):
            raise LegoError(f"header takes a layout and a name, not {of!r}")
        return str(LANGUAGES[language](of, name))

    def helpers() -> str:
        if language in ("c", "cuda"):
            return c_helpers(language, set(C_HELPERS))
        return helper_text(language, {name for lang, name in PYTHON_HELPERS if lang == language})

    own = (layout, size, var, header, helpers)
    names = {f.__name__: f for f in own}
    tiles = {"triton": to_triton, "cute": to_cute}
    return {**{name: getattr(algebra, name) for name in _ALGEBRA.split()}, **names, **tiles}


def _hole(language: str, value: Any) -> str:
    """Return the text of what stands in a hole.

    Raises:
        LegoError: it has none.
    """
    if isinstance(value, Layout):
        raise LegoError(
            f"the layout '{value}' stands in a hole without an index",
            hint="write A[i, j] for an offset, header(A, 'A') for its functions, A.text for it",
        )
    if isinstance(value, bool) or value is None:
        raise LegoError(f"{value} stands in a hole: it has no text in {language}")
    if is_list(value):
        return ", ".join(_hole(language, v) for v in value)
    if isinstance(value, str | CuteLayout):
        return str(value)
    if isinstance(value, Expr | int | Slice | TritonTile):
        text = value if isinstance(value, TritonTile) else LANGUAGES[language](value)
        return _atom(str(text))
    kind = type(value).__name__
    raise LegoError(
        f"a {kind} stands in a hole: it has no text in {language}",
        hint="call a function, index a layout",
    )


def _atom(text: str) -> str:
    """Return the text in parentheses, unless it is a name or a number: a hole is an operand."""
    return text if re.fullmatch(r"\w+", text) else f"({text})"
