"""Are two layouts the same function of the same index?

Four methods are tried until one decides: the blocks, once simplified; the index expressions, which
are in normal form; every element, where there are not too many; and Z3. What none of them settles
stays unknown, and the verdict says so. A user's own functions are checked on integers before
they are trusted on symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from lego_mlir.algebra.compose import check_layout, simplified_stages
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.algebra.verification.enumeration import (
    Function,
    all_elements,
    as_points,
    sample_elements,
)
from lego_mlir.algebra.verification.verdict import Counterexample, Method, Verdict
from lego_mlir.index import Expr, Int, Sym, construct, nodes
from lego_mlir.index.evaluate import evaluate
from lego_mlir.index.functions import where
from lego_mlir.index.proofs import samples
from lego_mlir.index.work import measured

if TYPE_CHECKING:
    import numpy as np

    from lego_mlir.algebra.layout import Layout

    Points = tuple[np.ndarray[Any, Any], ...]

MOST_ELEMENTS = 1 << 22
"""Larger layouts are not compared element by element."""

_SMALL = 1 << 16
"""With symbolic sizes, layouts of so many elements are compared before anything is proven."""


@measured()
def equality(a: Layout, b: Layout) -> Verdict:
    """Return whether `a.apply` and `b.apply` agree everywhere; equal names are one size.

    Raises:
        LegoError: `b` is no layout; a user's function raises something, or returns what is no
            integer.
    """
    check_layout("equals", b)
    a, b = _with_common_symbols(a, b)
    for ask in (_of_spaces, _by_construction, _by_normal_form, _by_enumeration, _by_sample):
        verdict = ask(a, b)
        if verdict is not None:
            return verdict
    return _by_proof(a, b)


def _with_common_symbols(a: Layout, b: Layout) -> tuple[Layout, Layout]:
    """Return both with one symbol a name, which carries the facts of either."""
    named: dict[str, list[Sym]] = {}
    for s in dict.fromkeys((*a.symbols, *b.symbols)):
        named.setdefault(s.name, []).append(s)
    one: dict[Sym, Int] = {}
    for name, same in named.items():
        divisors = frozenset[Int]().union(*(s.divisors for s in same))
        lo = max(s.lo or 1 for s in same)
        hi = same[0].hi if len({s.hi for s in same}) == 1 else None
        one |= {s: Sym(name, lo, hi, divisors) for s in same if len(same) > 1}
    return (a.substitute(one), b.substitute(one)) if one else (a, b)


# The index spaces.
def _of_spaces(a: Layout, b: Layout) -> Verdict | None:
    """Return the verdict that follows from the index spaces alone, if one does."""
    shown = f"'{a}' is indexed by {sizes_text(a.dims)}, '{b}' by {sizes_text(b.dims)}"
    if a.rank != b.rank:
        return Verdict(False, "construction", shown)
    for k, (m, n) in enumerate(zip(a.dims, b.dims, strict=True)):
        difference = construct.sub(m, n)
        if isinstance(difference, int):
            if difference:
                return Verdict(False, "construction", f"{shown}: dimension {k} differs")
            continue
        from lego_mlir.index.proofs import solver

        answer = solver.prove(zero=[difference])
        if answer.holds is False:
            sizes = answer.counterexample or {}
            where = ", ".join(f"{name} = {value}" for name, value in sizes.items())
            detail = f"{shown}: dimension {k} differs where {where}"
            return Verdict(False, "proof", detail, Counterexample((), (), sizes))
        if answer.holds is None:
            detail = f"{shown}: whether dimension {k} is the same stays unknown"
            return Verdict(None, "proof", detail)
    return None


# By the blocks.
def _by_construction(a: Layout, b: Layout) -> Verdict | None:
    if a == b:
        return Verdict(True, "construction", f"both are '{a}'")
    if a.is_partial or b.is_partial or a.window or b.window:
        return None
    if simplified_stages(a.stages) != simplified_stages(b.stages):
        return None
    return Verdict(True, "construction", f"'{a}' and '{b}' are both '{a.simplified()}'")


# By the index expressions.
def _index_symbols(a: Layout, b: Layout) -> tuple[Sym, ...]:
    taken = {s.name for layout in (a, b) for s in layout.symbols}
    prefix = "i"
    while any(f"{prefix}{k}" in taken for k in range(a.rank)):
        prefix += "_"
    tops = (construct.sub(n, 1) for n in a.dims)
    return tuple(Sym(f"{prefix}{k}", 0, top) for k, top in enumerate(tops))


def _derived(layout: Layout, index: tuple[Sym, ...]) -> Int | None:
    """Return the offset, in normal form; `None` where a user's function takes no symbols."""
    try:
        offset = _offset(layout, index)
    except Exception:  # whatever a function that is written for integers raises
        return None
    return nodes.plain(offset) if isinstance(offset, int | Expr) else None


def _offset(layout: Layout, index: tuple[Any, ...]) -> Any:
    """Return the offset where there is an element, else -1."""
    if not layout.is_partial:
        return layout.apply(*index)
    inside = layout.mask(*index)
    if isinstance(inside, int):
        return layout.apply(*index) if inside else -1
    if isinstance(inside, Expr):
        return where(inside, layout.apply(*index), -1)
    import numpy as np

    found = np.full(inside.shape, -1, np.int64)
    if inside.any():
        found[inside] = layout.apply(*(np.broadcast_to(i, inside.shape)[inside] for i in index))
    return found


def _by_normal_form(a: Layout, b: Layout) -> Verdict | None:
    if a.functions or b.functions:
        return None
    index = _index_symbols(a, b)
    left = _derived(a, index)
    same = left is not None and left == _derived(b, index)
    return _same_form(index, left) if same else None


def _same_form(index: tuple[Sym, ...], offset: Int | None) -> Verdict:
    return Verdict(True, "proof", f"both put element {sizes_text(index)} at {offset!r}")


# By the elements.
def _calls(layout: Layout, sizes: Mapping[str, int]) -> Function:
    """Return the offset as a function of integers, where symbols have these values.

    A user's function that is written with a size symbol answers in terms of it, even where the
    layout's own sizes are bound.
    """
    bound = layout.substitute({s: sizes[s.name] for s in layout.symbols})

    def offset(*index: Any) -> tuple[Any]:
        at = _offset(bound, index)
        return (evaluate(at, sizes) if isinstance(at, Expr) else at,)

    return Function(f"'{layout}'", offset, 1)


def _difference(
    left: Function, right: Function, points: Points, sizes: Mapping[str, int]
) -> Counterexample | None:
    """Return the first of these elements that two functions put at different offsets."""
    import numpy as np

    (p,), (q,) = left.on(points), right.on(points)
    differs = (p != q).astype(bool)
    if not differs.any():
        return None
    k = int(np.argmax(differs))
    element = tuple(int(column[k]) for column in points)
    return Counterexample((element,), (int(p[k]), int(q[k])), sizes)


def _refuted(a: Layout, b: Layout, method: Method, found: Counterexample) -> Verdict:
    values = ", ".join(f"{name} = {value}" for name, value in found.sizes.items())
    at, (left, right) = list(found.elements[0]), found.positions
    detail = f"'{a}' puts element {at} at {_position_text(left)}, '{b}' at {_position_text(right)}"
    return Verdict(False, method, f"{detail}, where {values}" if values else detail, found)


def _position_text(position: int) -> str:
    return "no offset (padding)" if position < 0 else str(position)


def _by_enumeration(a: Layout, b: Layout) -> Verdict | None:
    dims = tuple(n for n in a.dims if isinstance(n, int))
    if len(dims) < a.rank or prod(dims) > MOST_ELEMENTS:
        return None
    for points in all_elements(dims):
        found = _difference(_calls(a, {}), _calls(b, {}), points, {})
        if found is not None:
            return _refuted(a, b, "enumeration", found)
    detail = f"'{a}' and '{b}' agree on each of {prod(dims)} elements"
    return Verdict(True, "enumeration", detail)


def _samples(a: Layout, b: Layout) -> Iterator[tuple[Points, Mapping[str, int]]]:
    """Return some elements of large layouts; of symbolic sizes, all elements of some small ones."""
    if not (a.symbols or b.symbols):
        yield as_points(sample_elements(tuple(n for n in a.dims if isinstance(n, int)))), {}
        return
    for sizes in samples.points(frozenset((*a.symbols, *b.symbols))):
        dims = tuple(int(evaluate(n, sizes)) for n in a.dims)
        if min(dims) >= 1 and prod(dims) <= _SMALL:
            for points in all_elements(dims):
                yield points, sizes


def _by_sample(a: Layout, b: Layout) -> Verdict | None:
    """Return a difference among the samples: most that differ do so there."""
    for points, sizes in _samples(a, b):
        found = _difference(_calls(a, sizes), _calls(b, sizes), points, sizes)
        if found is not None:
            return _refuted(a, b, "enumeration", found)
    return None


# By Z3.
def _by_proof(a: Layout, b: Layout) -> Verdict:
    from lego_mlir.index.proofs import solver

    index = _index_symbols(a, b)
    left, right = _derived(a, index), _derived(b, index)
    unknown = f"whether '{a}' and '{b}' agree stays unknown"
    if left is None or right is None:
        return Verdict(None, "proof", f"{unknown}: a function of theirs takes no symbols")
    for points, sizes in _samples(a, b):
        if not all(_is_consistent(x, index, y, points, sizes) for x, y in ((left, a), (right, b))):
            why = "a function of theirs is not the same for symbols as for integers"
            return Verdict(None, "proof", f"{unknown}: {why}")
    if left == right:
        return _same_form(index, left)
    # That an index is not negative goes along, so that a counter-example has all symbols.
    answer = solver.prove(zero=[construct.sub(left, right)], nonnegative=index)
    if answer.holds:
        return Verdict(True, "proof", f"'{a}' and '{b}' agree: proven for every index")
    point = answer.counterexample
    if answer.holds is False and point is not None:
        sizes = {s.name: point[s.name] for x in (a, b) for s in x.symbols}
        element = as_points([tuple(point[s.name] for s in index)])
        found = _difference(_calls(a, sizes), _calls(b, sizes), element, sizes)
        if found is not None:
            return _refuted(a, b, "proof", found)
    return Verdict(None, "proof", f"{unknown}: it is not proven within Z3's limit")


def _is_consistent(
    offset: Int, index: tuple[Sym, ...], layout: Layout, points: Points, sizes: Mapping[str, int]
) -> bool:
    """Return whether an expression gives what a layout's functions give at these points."""
    if not layout.functions:
        return True
    names = [s.name for s in index]

    def derived(*values: Any) -> tuple[Any]:
        return (evaluate(offset, {**sizes, **dict(zip(names, values, strict=True))}),)

    expression = Function(f"'{layout}'", derived, 1)
    return _difference(expression, _calls(layout, sizes), points, sizes) is None
