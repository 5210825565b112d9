"""What `legoc --print` prints: a layout in another language."""

from __future__ import annotations

from collections.abc import Mapping

from lego_mlir.algebra.notation.parser import parse_layout
from lego_mlir.diagnostics import LegoError, printable
from lego_mlir.printers.cute import to_cute
from lego_mlir.printers.templates import LANGUAGES


def printed_layout(text: str, language: str, name: str, sizes: Mapping[str, int]) -> str:
    """Return what `legoc --print` prints of a layout.

    Args:
        text: the layout, in its notation.
        language: one of `LANGUAGES`, or cute.
        name: what the names of its functions begin with.
        sizes: values of its symbols.

    Raises:
        LegoError: it is no layout, has no such size, or cannot be printed.
    """
    layout = parse_layout(text, sizes)
    free = {s.name for s in parse_layout(text).symbols}
    for size in sizes:
        if size not in free:
            known = ", ".join(sorted(free)) or "none"
            raise LegoError(f"--set {size}: the layout has no symbol '{size}' (it has: {known})")
    if language != "cute":
        return str(LANGUAGES[language](layout, name))
    found = to_cute(layout)
    return f"// {printable(str(layout))}\n// {found}\nauto {name} = {found.cpp()};\n"
