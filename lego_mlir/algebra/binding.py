"""The values of a layout's symbolic sizes, as `Layout.bind` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lego_mlir.algebra.sizes import as_size
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, Sym, substitute

if TYPE_CHECKING:
    from lego_mlir.algebra.layout import Layout


def values_of(layout: Layout, sizes: Mapping[str, int]) -> dict[Sym, Int]:
    """Return the value of each symbol that `sizes` names.

    Raises:
        LegoError: no such symbol, no positive integer, or a size that does not divide.
    """
    names = dict.fromkeys(s.name for s in layout.symbols)
    for name in sizes:
        if name not in names:
            known = ", ".join(names) or "none"
            raise LegoError(f"bind: '{layout}' has no symbol '{name}' (it has: {known})")
    numbers = {name: as_size(n, f"bind({name})") for name, n in sizes.items()}
    values = {s: numbers[s.name] for s in layout.symbols if s.name in numbers}
    for s, value in values.items():
        for d in s.divisors:
            bound = substitute(d, values)
            if isinstance(bound, int) and isinstance(value, int) and value % bound:
                known = repr(d) if repr(d) == repr(bound) else f"{d!r} = {bound}"
                raise LegoError(f"bind: {s.name} = {value} is no multiple of {known}")
    return values
