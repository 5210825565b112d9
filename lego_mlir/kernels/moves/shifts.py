"""Movements inside of a tensor's dimensions: pad, crop, flip, roll."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel
from lego_mlir.frontend.dtypes import bytes_of
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.kernels.moves.axes import BOUNDARIES, Axis, merged
from lego_mlir.kernels.moves.by_words import kernel_by_words, word_bytes
from lego_mlir.kernels.moves.pieces import Movement, Output, Source, pieces_of
from lego_mlir.kernels.moves.windows import check, tensor, windowed
from lego_mlir.kernels.public import public

Shape = Sequence[int | None]


@public
def pad(
    shape: Shape,
    before: Sequence[int],
    after: Sequence[int],
    dtype: str = "f32",
    *,
    boundary: str = "zero",
) -> Kernel:
    """Return a kernel `(x, y)`: y is x with further elements before and after each dimension.

    Args:
        shape: sizes of x; the first may be `None`, if it is not padded: each launch has its own.
        before: elements before each dimension.
        after: elements behind each dimension.
        dtype: element type of both.
        boundary: what they are: "zero", "clamp" for the nearest element (NumPy's mode "edge"), or
            "wrap" for the other end of the dimension.

    Raises:
        LegoError: a size, a type or the boundary is wrong.
    """
    check("pad", shape, dtype)
    _each("pad", shape, before=before, after=after)
    if boundary not in BOUNDARIES:
        raise LegoError(
            f"pad: there is no boundary {boundary!r}", hint=f"known: {', '.join(BOUNDARIES)}"
        )
    if any(n < 0 for n in (*before, *after)):
        raise LegoError(
            f"pad: before={list(before)} or after={list(after)} is negative",
            hint="crop takes elements away",
        )
    axes = []
    for n, low, high in zip(shape, before, after, strict=True):
        if n is None or not (low or high):
            _refuse_unknown("pad", n, changes=bool(low or high))
            axes.append(Axis(n, n))
            continue
        if boundary == "wrap" and max(low, high) > n:
            raise LegoError(
                f"pad: {max(low, high)} elements of a dimension of {n} wrap more than once",
                hint="a dimension is wrapped by as many elements as it has, at most",
            )
        axes.append(Axis(n, low + n + high, -low, 1, boundary))
    how = f"{list(before)} before, {list(after)} behind: {boundary}"
    return _moved("pad", axes, dtype, how)


@public
def crop(shape: Shape, begin: Sequence[int], sizes: Shape, dtype: str = "f32") -> Kernel:
    """Return a kernel `(x, y)`: y is the part of x that begins at an index.

    Args:
        shape: sizes of x; the first may be `None`, and that of `sizes` then is, too.
        begin: index of the first element.
        sizes: of y.
        dtype: element type of both.

    Raises:
        LegoError: a size or a type is wrong, or x has no such part.
    """
    check("crop", shape, dtype)
    check("crop", sizes)
    _each("crop", shape, begin=begin, sizes=sizes)
    axes = []
    for k, (n, first, size) in enumerate(zip(shape, begin, sizes, strict=True)):
        if n is None or size is None:
            _refuse_unknown("crop", None, changes=n != size or bool(first))
            axes.append(Axis(None, None))
            continue
        if first < 0 or first + size > n:
            raise LegoError(
                f"crop: dimension {k} has {n} elements, not {size} from {first} on",
                hint="begin and sizes are inside of the shape",
            )
        axes.append(Axis(n, size, first))
    return _moved("crop", axes, dtype, f"{list(sizes)} from {list(begin)} on")


@public
def flip(shape: Shape, axes: Sequence[int], dtype: str = "f32") -> Kernel:
    """Return a kernel `(x, y)`: y is x with some dimensions reversed, as NumPy's flip.

    Args:
        shape: sizes of x and y; the first may be `None`, if it is not reversed.
        axes: the dimensions that are reversed, counted from 0.
        dtype: element type of both.

    Raises:
        LegoError: a size, a type or an axis is wrong.
    """
    check("flip", shape, dtype)
    if len(set(axes)) != len(axes) or any(k not in range(len(shape)) for k in axes):
        raise LegoError(
            f"flip: {list(axes)} are not dimensions of {list(shape)}",
            hint="each dimension at most once, counted from 0",
        )
    found = []
    for k, n in enumerate(shape):
        _refuse_unknown("flip", n, changes=k in axes)
        is_reversed = k in axes and n is not None and n > 1
        found.append(Axis(n, n, n - 1, -1) if is_reversed and n is not None else Axis(n, n))
    return _moved("flip", found, dtype, f"reversed along {list(axes)}")


@public
def roll(shape: Shape, shifts: Sequence[int], dtype: str = "f32") -> Kernel:
    """Return a kernel `(x, y)`: y is x shifted along each dimension, around its end.

    Args:
        shape: sizes of x and y; the first may be `None`, if it is not shifted.
        shifts: elements by which each dimension is shifted, as in NumPy's roll: of any sign.
        dtype: element type of both.

    Raises:
        LegoError: a size, a type or the number of shifts is wrong.
    """
    check("roll", shape, dtype)
    _each("roll", shape, shifts=shifts)
    axes = []
    for n, shift in zip(shape, shifts, strict=True):
        _refuse_unknown("roll", n, changes=bool(shift))
        by = 0 if n is None else shift % n
        axes.append(Axis(n, n, -by, 1, "wrap") if by else Axis(n, n))
    return _moved("roll", axes, dtype, f"shifted by {list(shifts)}")


def _moved(name: str, axes: Sequence[Axis], dtype: str, how: str) -> Kernel:
    """Return the kernel `(x, y)` of a movement: by words, if all sizes are known.

    Args:
        name: of the kernel.
        axes: its dimensions.
        dtype: element type of x and y.
        how: what `explain()` says of it.
    """
    shape = [axis.read for axis in axes if axis.read is not None]
    if len(shape) < len(axes):
        return windowed(name, axes, dtype, dtype, how)
    x, y = (
        replace(tensor(dtype, sizes), alignment=MAX_ACCESS_BYTES)
        for sizes in (shape, [axis.written for axis in axes])
    )
    *outer, row = merged(axes)
    element = bytes_of(dtype)
    assert row.read is not None
    movement = Movement(
        outputs=(Output(pieces_of(row)),),
        sources=(Source(prod(shape), row.read),),
        outer=tuple(outer),
        word=word_bytes(element, MAX_ACCESS_BYTES) // element,
        element=element,
    )
    return kernel_by_words(name, movement, {"x": x}, {"y": y}, how)


def _each(name: str, shape: Shape, **lists: Sequence[int | None]) -> None:
    """Check that lists have a number for each dimension.

    Raises:
        LegoError: one has not.
    """
    for argument, numbers in lists.items():
        if len(numbers) != len(shape):
            raise LegoError(
                f"{name}: {argument}={list(numbers)} has {len(numbers)} numbers, and the shape "
                f"{list(shape)} has {len(shape)} dimensions",
                hint="one for each dimension",
            )


def _refuse_unknown(name: str, size: int | None, *, changes: bool) -> None:
    if size is None and changes:
        raise LegoError(
            f"{name}: the first dimension changes, and its size is only known to the launch",
            hint="name the size of a dimension that changes",
        )
