"""A block tried on the elements of its tile: where each goes, and whether it comes back.

A block is a pair of functions. They are called as they are: on whole arrays where they take
arrays, and on one element after the other where they are written for integers (`if`, a table).
Where arrays overflow they say something else than integers do, so a few elements of each chunk are
called both ways, and integers are believed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from lego_mlir.algebra.blocks import Block, GenP, unflatten
from lego_mlir.algebra.verification.verdict import Counterexample
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, symbols
from lego_mlir.index.evaluate import evaluate
from lego_mlir.index.functions import is_array

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

Element: TypeAlias = tuple[int, ...]
"""The index of an element."""

_CHUNK = 1 << 16
"""Elements looked at in one go; about what a cache holds."""

_MOST_CORNERS = 1 << 10
_RANDOM_ELEMENTS = 200


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong with a block: one sentence, and the elements that show it."""

    detail: str
    counterexample: Counterexample


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a pair, from integers to integers.

    Attributes:
        name: what errors call it.
        call: takes integers or arrays, returns a tuple of such.
        results: how many values it returns.
    """

    name: str
    call: Callable[..., tuple[Any, ...]]
    results: int

    def at(self, *point: int) -> tuple[int, ...]:
        """Return the values at one point.

        Raises:
            LegoError: it raises something, or returns what is no integer; names the point.
        """
        try:
            values = tuple(self.call(*point))
        except LegoError:
            raise
        except Exception as e:
            reason = f"{type(e).__name__}: {e}".rstrip(": ")
            raise LegoError(f"{self.name} fails at {_shown(point)}: {reason}") from None
        if len(values) != self.results:
            raise LegoError(
                f"{self.name} returns {len(values)} values at {_shown(point)}, not {self.results}"
            )
        for value in values:
            if not _is_integer(value):
                raise LegoError(
                    f"{self.name} returns {value!r} at {_shown(point)}, which is no integer"
                )
        return tuple(int(value) for value in values)

    def on(self, points: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return the values at many points, one array a coordinate.

        Raises:
            LegoError: as `at` does.
        """
        values = self.vectorised(points)
        if values is not None:
            return values
        import numpy as np

        rows = [self.at(*(int(x) for x in point)) for point in zip(*points, strict=True)]
        columns = list(zip(*rows, strict=True))
        try:
            return tuple(np.array(column, np.int64) for column in columns)
        except OverflowError:  # Python's integers have no limit
            return tuple(np.array(column, object) for column in columns)

    def vectorised(self, points: tuple[Array, ...]) -> tuple[Array, ...] | None:
        """Return the values at many points, if it takes arrays and gives what it gives for ints."""
        import numpy as np

        shape = points[0].shape
        if points[0].dtype == object:  # Python's integers: one at a time
            return None
        try:
            with np.errstate(all="raise"):
                # Copies, as `i += 1` in a user's function writes into its argument.
                values = tuple(
                    np.broadcast_to(np.asarray(value), shape)
                    for value in self.call(*(p.copy() for p in points))
                )
        except Exception:
            return None
        if len(values) != self.results or any(v.dtype.kind not in "iub" for v in values):
            return None
        for k in {0, len(points[0]) // 3, len(points[0]) - 1}:
            if self.at(*(int(p[k]) for p in points)) != tuple(int(v[k]) for v in values):
                return None
        return tuple(v.astype(np.int64) if v.dtype.kind == "b" else v for v in values)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two functions on a tile of known sizes that should permute it and undo one another.

    Attributes:
        text: the block, in errors.
        dims: the sizes of the tile.
        forward: from the index of an element to its position.
        inverse: from a position to the index.
        sizes: the values of the block's symbols, by name.
    """

    text: str
    dims: tuple[int, ...]
    forward: Function
    inverse: Function
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.dims)

    def outside(self, element: Element, position: int) -> Violation:
        """Return the violation of an element that leaves the tile."""
        what = f"goes to position {position}, outside of the tile's {self.size}"
        return self._violation(
            f" is no permutation: element {list(element)} {what}", position, element
        )

    def collision(self, element: Element, other: Element, position: int) -> Violation:
        """Return the violation of two elements at one position."""
        what = f"goes to position {position}, as element {list(other)} does"
        detail = f" is no permutation: element {list(element)} {what}"
        return self._violation(detail, position, element, other)

    def not_undone(self, element: Element, position: int, back: Element) -> Violation:
        """Return an element that comes back as another."""
        what = f"goes to position {position}, which comes back as {list(back)}"
        detail = f": the functions do not undo one another: element {list(element)} {what}"
        return self._violation(detail, position, element, back)

    def _violation(self, detail: str, position: int, *elements: Element) -> Violation:
        values = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        where = f", where {values}" if values else ""
        return Violation(
            self.text + detail + where, Counterexample(elements, (position,), self.sizes)
        )


def called(block: Block, sizes: Mapping[str, int] | None = None) -> Pair:
    """Return a block's own functions, on the tile that it has at these values of its symbols."""
    values = {s.name: (sizes or {})[s.name] for n in block.dims for s in symbols(n)}
    dims = tuple(int(evaluate(n, values)) for n in block.dims)
    bound = block.bind({s: values[s.name] for n in block.dims for s in symbols(n)})

    def known(x: Any) -> Any:
        """Return a function that is written with a size symbol answers in terms of it."""
        return evaluate(x, values) if isinstance(x, Expr) else x

    f, f_inv = "its function", "its inverse"
    if isinstance(block, GenP) and block.permutation.functions is not None:
        f, f_inv = re.findall(r"@\w+", block.permutation.text)
        if block.permutation.inverse_of is not None:
            f, f_inv = f_inv, f
    return Pair(
        block.text,
        dims,
        Function(f"{block.text}: {f}", lambda *index: (known(bound.apply(index)),), 1),
        Function(
            f"{block.text}: {f_inv}",
            lambda flat: tuple(known(i) for i in bound.inv(flat)),
            len(dims),
        ),
        values,
    )


def find_violation(pair: Pair) -> Violation | None:
    """Look at every element of a tile; `None` if its functions permute it and invert one another.

    First every element goes to a position of its own, which makes a table of who is where; then
    every position comes back as who is there.
    """
    import numpy as np

    who = np.full(pair.size, -1, np.int64)
    for elements in _chunks(pair.size):
        index = np.unravel_index(elements, pair.dims)
        (positions,) = pair.forward.on(index)
        outside = ((positions < 0) | (positions >= pair.size)).astype(bool)
        if outside.any():
            k = int(np.argmax(outside))
            return pair.outside(_row(index, k), int(positions[k]))
        positions = positions.astype(np.int64)
        before = who[positions]
        who[positions] = elements
        after = who[positions]
        collided = (before >= 0) | (after != elements)
        if collided.any():
            k = int(np.argmax(collided))
            other = int(before[k] if before[k] >= 0 else after[k])
            return pair.collision(_row(index, k), unflatten(pair.dims, other), int(positions[k]))
    for positions in _chunks(pair.size):
        index = np.unravel_index(who[positions], pair.dims)
        back = pair.inverse.on((positions,))
        differs = np.any([b != i for b, i in zip(back, index, strict=True)], axis=0).astype(bool)
        if differs.any():
            k = int(np.argmax(differs))
            return pair.not_undone(_row(index, k), int(positions[k]), _row(back, k))
    return None


def violation_at(pair: Pair, element: Element) -> Violation | None:
    """Return the violation at one element, if there is one."""
    (position,) = pair.forward.at(*element)
    if not 0 <= position < pair.size:
        return pair.outside(element, position)
    back = pair.inverse.at(position)
    if back == element:
        return None
    inside = all(0 <= i < n for i, n in zip(back, pair.dims, strict=True))
    if inside and pair.forward.at(*back) == (position,):
        return pair.collision(element, back, position)
    return pair.not_undone(element, position, back)


def check_agreement(pair: Pair, derived: Pair, elements: tuple[Array, ...]) -> None:
    """Raise LegoError unless functions give for symbols what they give for integers.

    Comparing symbols by `==` compares the symbols themselves, not whether they are equal,
    so a function that does is one thing here and another in the compiled kernel.

    Args:
        pair: the functions as they are; they invert one another.
        derived: what they are on symbols.
        elements: where to look.

    Raises:
        LegoError: the two differ, at one of these elements or its position.
    """
    positions = pair.forward.on(elements)
    _check_equal(pair.forward, positions, derived.forward, elements)
    _check_equal(pair.inverse, elements, derived.inverse, positions)


def _check_equal(
    function: Function, expected: tuple[Array, ...], derived: Function, points: tuple[Array, ...]
) -> None:
    import numpy as np

    values = derived.on(points)
    differs = np.any([a != b for a, b in zip(expected, values, strict=True)], axis=0).astype(bool)
    if differs.any():
        k = int(np.argmax(differs))
        raise LegoError(
            f"{function.name} gives {_shown(_row(expected, k))} at {_shown(_row(points, k))}, "
            f"but what is derived from it for kernels gives {_shown(_row(values, k))}",
            hint="symbols are compared by <, <=, > and >=, and chosen between by where, minimum "
            "and maximum; == does not look at their values",
        )


def all_elements(dims: tuple[int, ...]) -> Iterator[tuple[Array, ...]]:
    """Return the indices of all elements of a tile, in chunks."""
    import numpy as np

    for elements in _chunks(prod(dims)):
        yield np.unravel_index(elements, dims)


def sample_elements(dims: tuple[int, ...]) -> list[Element]:
    """Return some elements of a tile that is too large to look at all: always the same ones.

    Those at its corners and next to them, those at powers of two, and some in between.
    """
    ends = [sorted({0, min(1, n - 1), max(n - 2, 0), n - 1}) for n in dims]
    size = prod(dims)
    random = Random(size)
    flats = {f for k in range(size.bit_length()) for f in ((1 << k) - 1, 1 << k) if f < size}
    flats |= {random.randrange(size) for _ in range(_RANDOM_ELEMENTS)}
    corners = islice(product(*ends), _MOST_CORNERS)
    return list(dict.fromkeys([*corners, *(unflatten(dims, f) for f in sorted(flats))]))


def as_points(elements: list[Element]) -> tuple[Array, ...]:
    """Return elements as arrays of Python's integers, which do not overflow."""
    import numpy as np

    return tuple(np.array(column, object) for column in zip(*elements, strict=True))


def _chunks(size: int) -> Iterator[Array]:
    import numpy as np

    for start in range(0, size, _CHUNK):
        yield np.arange(start, min(start + _CHUNK, size))


def _row(columns: tuple[Array, ...], k: int) -> Element:
    return tuple(int(column[k]) for column in columns)


def _is_integer(x: Any) -> bool:
    return isinstance(x, int) or (is_array(x) and x.shape == () and x.dtype.kind in "iub")


def _shown(values: Element) -> str:
    return str(values[0]) if len(values) == 1 else str(list(values))
