"""Layouts as shapes and strides, in CuTe's notation, where a layout has them.

    OrderBy(Row(128, 64))                      (128,64):(64,1)
    OrderBy(RegP([4, 8], [1, 0])).GroupBy([32])   ((8,4)):((4,1))

A dimension of the index is one mode, of a size and a stride, or it is split into several: index i
of the second layout has the digits i mod 8 and i / 8, with strides 4 and 1. As in CuTe, the first
sub-mode is the one that varies fastest (colexicographic order), and the dimensions themselves are
in the order of the index. Neighbours whose strides follow from one another are one mode, so a
function has one such form. A dimension of size 1 has stride 0.

Here a list of modes runs from the fastest to the slowest, and none has size 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from lego_mlir.algebra.blocks import RegP, Sizes, inverse_permutation, permuted, regular
from lego_mlir.algebra.compose import refuse_partial, simplified_stages
from lego_mlir.algebra.parts import Order, Stage, make_view
from lego_mlir.algebra.sizes import as_size, product, size_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int, construct
from lego_mlir.index.integers import is_numpy_integer

if TYPE_CHECKING:
    from lego_mlir.algebra.layout import Layout
    from lego_mlir.algebra.windows.window import TensorWindow

Nested: TypeAlias = "Int | tuple[Nested, ...]"
"""An integer, or a tuple of nested integers."""

Mode: TypeAlias = tuple[Int, Int]
"""A size and a stride."""

MOST_ELEMENTS = 1 << 22
"""Where the blocks do not tell, layouts of so many elements are looked at element by element."""

_CUT = "the dimensions of its parts do not divide one another"


@dataclass(frozen=True, slots=True)
class Strides:
    """A shape with its strides; `str` writes them as CuTe does, `(128,64):(64,1)`.

    Attributes:
        shape: a size, or a tuple of sizes with the first varying fastest, for each dimension.
        stride: the distance in memory of neighbours, nested as the shape is.
    """

    shape: tuple[Nested, ...]
    stride: tuple[Nested, ...]

    def __str__(self) -> str:
        return f"{_nested_text(self.shape)}:{_nested_text(self.stride)}"


def _nested_text(x: Nested) -> str:
    match x:
        case (int() | Expr() as only,):
            return size_text(only)
        case tuple():
            return f"({','.join(_nested_text(part) for part in x)})"
    return size_text(x)


# From a layout to its strides.
def to_strides(layout: Layout) -> Strides:
    """Return the strides of a layout.

    Raises:
        LegoError: it has none: its offset is no sum of multiples of the digits of its index.
            Names an element that breaks the pattern, or the block that is not known to keep it.
    """
    if layout.window is not None:
        return strides_of_modes(_of_window(layout, layout.window))
    refuse_partial("to_strides", layout)
    found = _of_stages(simplified_stages(layout.stages), layout)
    if isinstance(found, str):
        found = _of_elements(layout, found)
    return strides_of_modes(found)


def _of_window(layout: Layout, window: TensorWindow) -> list[list[Mode]]:
    """Return the modes of a window: what its index adds to strided coordinates.

    Raises:
        LegoError: it begins elsewhere than at offset 0, has a boundary, or its base no strides.
    """
    strides = to_strides(window.base).stride
    functions = zip(window.coordinates, strides, window.is_inside, strict=True)
    total: list[Int] = [0] * len(window.dims)
    for f, stride, inside in functions:
        if layout.view is not None or isinstance(stride, tuple) or f.constant != 0 or not inside:
            raise LegoError(
                f"'{layout}' has no strides: a window has them if it begins at the first element "
                "and stays inside of the tensor"
            )
        moved = (construct.mul(c, stride) for c in f.coefficients)
        total = [construct.add(a, b) for a, b in zip(total, moved, strict=True)]
    pairs = zip(window.dims, total, strict=True)
    return [[(n, stride)] if n != 1 else [] for n, stride in pairs]


def strides_of_modes(found: Iterable[list[Mode]]) -> Strides:
    """Return shape and strides of the modes of each dimension."""
    modes = [_nested_mode(m) for m in found]
    return Strides(tuple(shape for shape, _ in modes), tuple(stride for _, stride in modes))


def _nested_mode(modes: list[Mode]) -> tuple[Nested, Nested]:
    match modes:
        case []:
            return 1, 0
        case [(size, stride)]:
            return size, stride
    return tuple(size for size, _ in modes), tuple(stride for _, stride in modes)


def _of_stages(stages: tuple[Stage, ...], layout: Layout) -> list[list[Mode]] | str:
    """Return the modes of each dimension, read off the stages; a reason where they do not tell."""
    modes: list[Mode] = [(layout.size, 1)]
    for stage in stages:
        for block in stage:
            if not isinstance(block, RegP):
                return f"{block.text} is no permutation of dimensions"
        (block,) = stage  # simplified: regular blocks are one
        assert isinstance(block, RegP)
        split = _split(modes, permuted(block.dims, block.perm))
        if split is None:
            return _CUT
        in_order = permuted(split, inverse_permutation(block.perm))
        modes = _coalesced(m for group in reversed(in_order) for m in group)
    split = _split(modes, layout.dims)
    return split or _CUT


def _split(modes: Sequence[Mode], dims: Sizes) -> list[list[Mode]] | None:
    """Return the modes of each row-major dimension; `None` where a dimension cuts a mode."""
    rest = list(reversed(modes))
    groups: list[list[Mode]] = []
    for needed in reversed(dims):
        group: list[Mode] = []
        while needed != 1:
            if not rest:
                return None
            size, stride = rest.pop()
            if (more := _quotient(needed, size)) is not None:
                group.append((size, stride))
                needed = more
            elif (left := _quotient(size, needed)) is not None:
                group.append((needed, stride))
                rest.append((left, construct.mul(stride, needed)))
                break
            else:
                return None
        groups.append(_coalesced(group))
    return groups[::-1]


def _quotient(a: Int, b: Int) -> Int | None:
    """Return `a / b` where b is known to divide a."""
    quotient = construct.floordiv(a, b)
    return quotient if construct.sub(a, construct.mul(quotient, b)) == 0 else None


def _coalesced(modes: Iterable[Mode]) -> list[Mode]:
    """Join neighbouring modes where the next stride is what a mode spans."""
    joined: list[Mode] = []
    for size, stride in modes:
        if size == 1:
            continue
        if joined and construct.mul(*joined[-1]) == stride:
            size, stride = construct.mul(joined[-1][0], size), joined.pop()[1]
        joined.append((size, stride))
    return joined


def _of_elements(layout: Layout, reason: str) -> list[list[Mode]]:
    """Return the modes of each dimension, read off the offsets of all elements."""
    dims = tuple(n for n in layout.dims if isinstance(n, int))
    if len(dims) < layout.rank or prod(dims) > MOST_ELEMENTS:
        raise LegoError(f"'{layout}' is not known to have strides: {reason}")
    import numpy as np

    offsets = offset_table(layout)
    zero = (0,) * len(dims)
    if offsets[zero]:
        raise _not_strided(layout, reason, zero, int(offsets[zero]), 0)
    found, expected = modes_of_table(offsets)
    if (offsets != expected).any():
        at = np.unravel_index(int(np.argmax(offsets != expected)), dims)
        element = tuple(int(i) for i in at)
        raise _not_strided(layout, reason, element, int(offsets[at]), int(expected[at]))
    return found


def modes_of_table(offsets: Any) -> tuple[list[list[Mode]], Any]:
    """Return the modes of each dimension that a table of offsets would have, and their offsets.

    The table has strides if these offsets are its own.

    Args:
        offsets: an int64 array with the dimensions of the index; 0 at the first element.
    """
    import numpy as np

    dims = offsets.shape
    found: list[list[Mode]] = []
    expected = np.zeros((1,) * len(dims), np.int64)
    for axis in range(len(dims)):
        along = offsets[tuple(slice(None) if k == axis else 0 for k in range(len(dims)))]
        modes = _modes_of(along.tolist())
        found.append([*modes])
        line = np.zeros(1, np.int64)
        for size, stride in modes:
            line = (np.arange(size)[:, None] * stride + line).reshape(-1)
        shape = [-1 if k == axis else 1 for k in range(len(dims))]
        expected = expected + line.reshape(shape)
    return found, expected


def offset_table(layout: Layout) -> Any:
    """Return the offset of every element, as an array with the dimensions of the index."""
    import numpy as np

    from lego_mlir.algebra.verification.enumeration import Function, all_elements

    dims = tuple(n for n in layout.dims if isinstance(n, int))
    apply = Function(f"'{layout}'", lambda *index: (layout.apply(*index),), 1)
    return np.concatenate([apply.on(points)[0] for points in all_elements(dims)]).reshape(dims)


def _modes_of(offsets: list[int]) -> list[tuple[int, int]]:
    """Return modes that would give these offsets along one dimension, if any do.

    The first element off the stride starts the next mode, if that divides the dimension. If it
    does not, the mode takes all, and that element shows that there are no strides.
    """
    modes: list[tuple[int, int]] = []
    while len(offsets) > 1:
        stride = offsets[1]
        size = next((k for k, x in enumerate(offsets) if x != k * stride), len(offsets))
        size = len(offsets) if len(offsets) % size else size
        modes.append((size, stride))
        offsets = offsets[::size]
    return modes


def _not_strided(
    layout: Layout, reason: str, element: tuple[int, ...], offset: int, expected: int
) -> LegoError:
    return LegoError(
        f"'{layout}' has no strides: {reason}; element {list(element)} is at {offset}, "
        f"where strides give {expected}"
    )


# From strides to a layout.
def from_strides(shape: Any, stride: Any = None) -> Layout:
    """Return the layout that a shape and strides describe.

    Args:
        shape: a size for each dimension, or a nested tuple of sizes, the first varying fastest;
            or, alone, both as a text such as "(128,64):(64,1)" or as `Strides`.
        stride: nested as the shape is. That of a size 1 does not matter.

    Raises:
        LegoError: the two are not nested alike, or hold something that is no integer; or the
            strides leave gaps, overlap, or cannot be ordered.
    """
    from lego_mlir.algebra.layout import Layout

    if isinstance(shape, str) and stride is None:
        from lego_mlir.algebra.notation.strides import parse_strides

        shape, stride = parse_strides(shape)
    elif isinstance(shape, Strides) and stride is None:
        shape, stride = shape.shape, shape.stride
    elif stride is None:
        raise LegoError(
            "from_strides: a shape needs its strides",
            hint='from_strides((128, 64), (64, 1)), or from_strides("(128,64):(64,1)")',
        )
    _check_nesting(shape, stride)
    if not isinstance(shape, tuple | list):
        shape, stride = (shape,), (stride,)
    groups = [list(_modes_in(n, d)) for n, d in zip(shape, stride, strict=True)]
    dims = tuple(product(size for size, _ in group) for group in groups)
    digits = [m for group in groups for m in reversed(group) if m[0] != 1]
    order = [digits.index(m) for m in _from_slowest(digits)]
    sizes = tuple(size for size, _ in digits)
    if not sizes or (order == sorted(order) and sizes != dims):
        return Layout((), make_view("GroupBy", (dims,)))
    block = regular(sizes, order)
    return Layout(
        (Order("OrderBy", (block,)),), None if sizes == dims else make_view("GroupBy", (dims,))
    )


def _check_nesting(shape: Any, stride: Any) -> None:
    def skeleton(x: Any) -> Any:
        return tuple(map(skeleton, x)) if isinstance(x, tuple | list) else None

    if skeleton(shape) != skeleton(stride):
        raise LegoError(f"from_strides: shape {shape} and stride {stride} are not nested alike")
    if "()" in str(skeleton(shape)):
        raise LegoError(f"from_strides: every tuple of shape {shape} needs a size")


def _modes_in(shape: Any, stride: Any) -> Iterable[Mode]:
    """Return the modes of one dimension, nested or not, from the fastest."""
    if isinstance(shape, tuple | list):
        for n, d in zip(shape, stride, strict=True):
            yield from _modes_in(n, d)
        return
    size = as_size(shape, "from_strides")
    distance = int(stride) if is_numpy_integer(stride) else stride
    if isinstance(distance, bool) or not isinstance(distance, int | Expr):
        raise LegoError(f"from_strides: a stride is an integer or a symbol, not {stride!r}")
    yield size, distance


def _from_slowest(modes: list[Mode]) -> list[Mode]:
    """Return the modes by falling stride, each the product of the sizes that are faster.

    Raises:
        LegoError: they are not; names the stride, and what it would have to be.
    """
    shown = ", ".join(f"{size_text(n)}:{size_text(d)}" for n, d in modes)
    ordered: list[Mode] = []
    rest = list(modes)
    expected: Int = 1
    while rest:
        found = next((m for m in rest if construct.sub(m[1], expected) == 0), None)
        if found is None:
            raise _no_bijection(shown, rest, expected)
        rest.remove(found)
        ordered.insert(0, found)
        expected = construct.mul(expected, found[0])
    return ordered


def _no_bijection(shown: str, rest: list[Mode], expected: Int) -> LegoError:
    known = [d for _, d in rest if isinstance(d, int)]
    if len(known) < len(rest) or not isinstance(expected, int):
        strides = ", ".join(size_text(d) for _, d in rest)
        return LegoError(
            f"from_strides: none of the strides {strides} is known to be {size_text(expected)}, "
            f"which is what the faster modes of {shown} span",
            hint="a stride is the product of the sizes that vary faster, written alike",
        )
    least = min(known)
    if least <= 0:
        size = next(size_text(n) for n, d in rest if d == least)
        return LegoError(
            f"from_strides: stride {least} of size {size} in {shown}: a stride is at least 1"
        )
    what = "overlaps them" if least < expected else "leaves a gap"
    return LegoError(
        f"from_strides: the faster modes of {shown} span {expected}, so stride {least} {what}",
        hint="a layout is a bijection: every offset below its size belongs to one element",
    )
