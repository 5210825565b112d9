"""Do different indices of a layout have different offsets?

What is stored through a layout needs that: of two values for one element, one is lost. Without a
window every layout is a bijection. A window keeps elements apart if its index follows from the
coordinates that it computes:

- one coordinate tells indices whose coefficients grow: from `8*b + x` with x < 8 follow b and x;
- indices that are known are taken out of the other coordinates.

Where that does not tell, the elements themselves are compared, all or those of a corner. Indices
without an element, in padding and outside of the tensor, count for nothing.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from lego_mlir.algebra.blocks import flatten
from lego_mlir.algebra.partial import mask
from lego_mlir.algebra.sizes import product, sizes_text
from lego_mlir.algebra.verification.verdict import Counterexample, Verdict
from lego_mlir.algebra.windows.affine import Affine
from lego_mlir.algebra.windows.window import TensorWindow
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, construct
from lego_mlir.index.proofs import prover, samples
from lego_mlir.index.work import measured

if TYPE_CHECKING:
    from lego_mlir.algebra.layout import Layout

_Pair = tuple[tuple[int, ...], tuple[int, ...]]
"""Two indices."""

MOST_ELEMENTS = 1 << 20
"""Of larger windows a corner is compared element by element."""


@measured()
def verify_injective(layout: Layout) -> Verdict:
    """Return whether no two indices of a layout have the same offset."""
    windows = _windows(layout)
    verdict = layout.base.verify()
    for window in windows:  # the innermost first
        if verdict.holds is not True:
            return verdict
        verdict = _of_window(window)
    if not windows or verdict.holds is not True:
        return verdict
    return Verdict(True, verdict.method, f"each index of '{layout}' has an offset of its own")


def verify_bijective(layout: Layout) -> Verdict:
    """Return whether a window is a bijection: injective, and of as many elements as offsets."""
    verdict = verify_injective(layout)
    if verdict.holds is not True:
        return verdict
    elements, offsets = product(layout.tensor_shape), layout.size
    has_holes = layout.window is not None and layout.window.has_holes
    if construct.sub(elements, offsets) == 0 and not has_holes:
        return verdict
    least = "at most " if has_holes else ""
    return Verdict(
        False,
        verdict.method,
        f"'{layout}' is injective, but no bijection: it has {least}{elements!r} elements and "
        f"{offsets!r} offsets",
    )


def _windows(layout: Layout) -> list[TensorWindow]:
    """Return the windows of a layout, the innermost first."""
    found: list[TensorWindow] = []
    while layout.window is not None:
        found.insert(0, layout.window)
        layout = layout.window.base
    return found


@lru_cache(maxsize=1 << 10)
def _of_window(window: TensorWindow) -> Verdict:
    if _tells_index(window):
        return Verdict(True, "construction", f"{window.text} has an element for each index")
    if not all(isinstance(n, int) for n in (*window.sizes, *window.base.dims)):
        return _of_sizes(window)
    shape = tuple(int(n) for n in window.dims)
    corner = _corner(shape)
    found = _met(window, corner)
    if found is not None:
        return _refuted(window, found, {})
    if corner == shape:
        return Verdict(True, "enumeration", f"{window.text} has an element for each index")
    return Verdict(None, "enumeration", f"whether {window.text} repeats elements stays unknown")


# By the coefficients.
def _tells_index(window: TensorWindow) -> bool:
    """Return whether the coordinates tell the index by their coefficients."""
    unknown = {k for k, n in enumerate(window.dims) if n != 1}
    left = [
        f
        for f, boundary, inside in zip(
            window.coordinates, window.boundaries, window.is_inside, strict=True
        )
        if inside or boundary == "zero"
    ]
    while unknown:
        told = [found for f in left if (found := _told(f, unknown, window))]
        if not told:
            return False
        unknown -= set().union(*told)
    return True


def _told(f: Affine, unknown: set[int], window: TensorWindow) -> set[int]:
    """Return the unknown indices that a coordinate tells: all that it depends on, or none."""
    terms = [(_absolute(f.coefficients[k]), window.dims[k], k) for k in unknown]
    terms = [term for term in terms if term[0] != 0]
    ordered = [term for term in terms if isinstance(term[0], int)]
    ordered.sort(key=lambda term: term[0])
    ordered += [term for term in terms if not isinstance(term[0], int)]
    reached: Int = 0
    for c, n, _ in ordered:
        if c is None or not prover.is_less(reached, c):
            return set()
        reached = construct.add(reached, construct.mul(c, construct.sub(n, 1)))
    return {k for _, _, k in terms}


def _absolute(c: Int) -> Any:
    """Return the absolute value of a coefficient, `None` if its sign is not known."""
    if isinstance(c, int):
        return abs(c)
    negative = construct.mul(-1, c)
    return c if prover.is_nonnegative(c) else negative if prover.is_nonnegative(negative) else None


# By the elements.
def _corner(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a part of a shape, at the beginning of each dimension, of few enough elements."""
    most = max(shape, default=1)
    while prod(min(n, most) for n in shape) > MOST_ELEMENTS:
        most = max(2, most // 2)
        if most == 2:
            break
    return tuple(min(n, most) for n in shape[:20]) + (1,) * len(shape[20:])


def _met(
    window: TensorWindow, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return two indices of a window's corner that have the same element, if there are any."""
    import numpy as np

    index = tuple(x.reshape(-1) for x in np.indices(shape, dtype=np.int64))
    dims, at = window.base.dims, window.at(index)
    exists = np.ones(prod(shape), bool)
    for x, n in zip(at, dims, strict=True):
        exists &= (np.asarray(x) >= 0) & (np.asarray(x) < n)
    exists &= mask(window.base.limits(at)) != 0
    flat = np.broadcast_to(np.asarray(flatten(dims, at)), exists.shape)[exists]
    order = np.argsort(flat, kind="stable")
    same = np.flatnonzero(np.diff(flat[order]) == 0)
    if not len(same):
        return None
    first, second = (np.flatnonzero(exists)[order[same[0] + k]] for k in (0, 1))
    return tuple(int(x[first]) for x in index), tuple(int(x[second]) for x in index)


def _of_sizes(window: TensorWindow) -> Verdict:
    """Return the verdict on a window with symbolic sizes: a counterexample among small ones."""
    from lego_mlir.algebra.layout import Layout

    layout = Layout(window=window)
    for sizes in samples.points(frozenset(layout.symbols)):
        try:
            bound = layout.bind(**{s.name: sizes[s.name] for s in layout.symbols}).window
        except LegoError:  # the sizes do not fit one another
            continue
        assert bound is not None
        found = _met(bound, _corner(tuple(int(n) for n in bound.dims)))
        if found is not None:
            return _refuted(window, found, sizes)
    return Verdict(None, "enumeration", f"whether {window.text} repeats elements stays unknown")


def _refuted(window: TensorWindow, found: _Pair, sizes: dict[str, int]) -> Verdict:
    first, second = map(sizes_text, found)
    where = "".join(f", {name} = {value}" for name, value in sizes.items())
    return Verdict(
        False,
        "enumeration",
        f"{window.text} has the same element at {first} and {second}{where}",
        Counterexample(found, (), sizes),
    )
