"""Facts in a layout's text: which sizes are multiples of which.

`M/128` says that 128 divides M, and so does a permutation that takes M in chunks. What symbols
carry beyond that is written behind the first of their occurrences, `Row(M{128}, K)`, so that the
text parses to an equal layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lego_mlir.algebra.sizes import size_text
from lego_mlir.index import Int, Sym, construct, symbols
from lego_mlir.index.nodes import Expr, FloorDiv
from lego_mlir.index.polynomial import divides
from lego_mlir.index.structure import children, order

Fact = tuple[Sym, Int]
"""A symbol and what divides it."""


def with_facts(text: str, sizes: Iterable[Int], stated: Iterable[tuple[Int, Int]]) -> str:
    """Return a layout's text, with the facts that it does not state otherwise.

    Args:
        text: all of it.
        sizes: the sizes in it.
        stated: what its permutations say: sizes and what divides them.
    """
    sizes = list(sizes)
    known = {(n, d) for n, d in stated if isinstance(n, Sym)}
    known.update(fact for n in sizes for fact in _exact_divisions(n))
    todo = sorted({s for n in sizes for s in symbols(n)}, key=order)
    done: set[Sym] = set()
    while todo:
        symbol = todo.pop()
        if symbol in done:
            continue
        done.add(symbol)
        # A fact that is known brings in the symbols of its divisor, as one that is added does.
        todo += sorted({s for d in symbol.divisors for s in symbols(d)}, key=order)
        unstated = [d for d in symbol.divisors if not _is_stated(symbol, d, known)]
        if unstated:
            listed = ", ".join(size_text(d) for d in sorted(unstated, key=order))
            text = re.sub(rf"(?<![@\w]){symbol.name}\b", rf"\g<0>{{{listed}}}", text, count=1)
    return text


def _is_stated(symbol: Sym, divisor: Int, known: set[Fact]) -> bool:
    return any(s is symbol and divides(divisor, d) for s, d in known)


def _exact_divisions(x: Int) -> Iterator[Fact]:
    """Yield the exact divisions of symbols in a size, which its text has as `/`."""
    if isinstance(x, int):
        return
    if isinstance(x, FloorDiv) and divides(x.den, x.num):
        dividend: Expr = x.num
        divisor = x.den
        while isinstance(dividend, FloorDiv) and divides(dividend.den, dividend.num):
            divisor = construct.mul(dividend.den, divisor)
            dividend = dividend.num
        if isinstance(dividend, Sym):
            yield dividend, divisor
    for child in children(x):
        yield from _exact_divisions(child)
