"""Several tensors as one, and one as several: concatenate and split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import EmptyType, Kernel
from lego_mlir.frontend.dtypes import bytes_of
from lego_mlir.kernels.moves.axes import Axis
from lego_mlir.kernels.moves.by_words import kernel_by_words, word_bytes
from lego_mlir.kernels.moves.pieces import Movement, Output, Piece, Source
from lego_mlir.kernels.moves.windows import check, tensor
from lego_mlir.kernels.public import public

MAX_PARTS = 64
"""Tensors of a launch: each is a branch of the kernel."""


@public
def concatenate(
    shapes: Sequence[Sequence[int]], axis: int = 0, dtype: str = "f32", *, alignment: int = 16
) -> Kernel:
    """Return a kernel `(x0, x1, …, y)`: y has the tensors behind one another along a dimension.

    Args:
        shapes: of the tensors, which differ along `axis` only, where they may be 0.
        axis: the dimension, counted from 0.
        dtype: element type of all.
        alignment: bytes that divide the addresses of all tensors, a power of two.

    Raises:
        LegoError: a size or a type is wrong, or shapes do not fit.
    """
    if not shapes:
        raise LegoError(
            "concatenate: shapes=[] has no tensor", hint="one or more: [(4, 30), (7, 30)]"
        )
    for shape in shapes:
        _check_axis("concatenate", shape, axis, dtype)
    first = list(shapes[0])
    for k, shape in enumerate(shapes):
        if [*shape[:axis], *shape[axis + 1 :]] != [*first[:axis], *first[axis + 1 :]]:
            raise LegoError(
                f"concatenate: tensor {k} has the shape {list(shape)}, tensor 0 {first}",
                hint=f"they may differ along dimension {axis} only",
            )
    sizes = [shape[axis] for shape in shapes]
    whole = [*first[:axis], sum(sizes), *first[axis + 1 :]]
    return _in_parts("concatenate", whole, axis, sizes, dtype, alignment, joins=True)


@public
def split(
    shape: Sequence[int],
    sizes: Sequence[int],
    axis: int = 0,
    dtype: str = "f32",
    *,
    alignment: int = 16,
) -> Kernel:
    """Return a kernel `(x, y0, y1, …)`: the y are the pieces of x along a dimension.

    Args:
        shape: sizes of x.
        sizes: of the pieces along `axis`, which may be 0; their sum is that of x.
        axis: the dimension, counted from 0.
        dtype: element type of all.
        alignment: bytes that divide the addresses of all tensors, a power of two.

    Raises:
        LegoError: a size or a type is wrong.
    """
    _check_axis("split", shape, axis, dtype)
    for size in sizes:
        _check_axis("split", [size], 0, dtype)
    if sum(sizes) != shape[axis]:
        raise LegoError(
            f"split: pieces of {list(sizes)} are not dimension {axis} of {list(shape)}",
            hint="the sizes of the pieces add up to that of the dimension",
        )
    return _in_parts("split", list(shape), axis, sizes, dtype, alignment, joins=False)


def _check_axis(name: str, shape: Sequence[int], axis: int, dtype: str) -> None:
    """Check a shape that may have no elements along a dimension.

    Raises:
        LegoError: it has no such dimension, or a size or the element type is wrong.
    """
    given: object = shape
    if isinstance(given, str) or not isinstance(given, Sequence):
        check(name, shape)
    if type(axis) is not int or not 0 <= axis < len(shape):
        raise LegoError(
            f"{name}: {list(shape)} has no dimension {axis!r}",
            hint=f"dimensions are counted from 0: axis is below {len(shape)}",
        )
    has_none = type(shape[axis]) is int and shape[axis] == 0
    check(name, [*shape[:axis], 1, *shape[axis + 1 :]] if has_none else shape, dtype)
    if None in shape:
        raise LegoError(
            f"{name}: {list(shape)} has a size that only the launch knows",
            hint="name the sizes of all dimensions",
        )


def _in_parts(
    name: str,
    whole: Sequence[int],
    axis: int,
    sizes: Sequence[int],
    dtype: str,
    alignment: int,
    *,
    joins: bool,
) -> Kernel:
    if not whole[axis]:
        raise LegoError(
            f"{name}: the tensors have no elements along dimension {axis}",
            hint="one of them has some",
        )
    if len(sizes) > MAX_PARTS:
        raise LegoError(f"{name}: {len(sizes)} tensors in one launch", hint=f"at most {MAX_PARTS}")
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise LegoError(
            f"{name}: alignment={alignment!r} is no power of two", hint="bytes, 16 by default"
        )
    rows, inner, element = prod(whole[:axis]), prod(whole[axis + 1 :]), bytes_of(dtype)
    parts: dict[str, Any] = {}
    for k, size in enumerate(sizes):
        shape = (*whole[:axis], size, *whole[axis + 1 :])
        parts[f"{'x' if joins else 'y'}{k}"] = (
            replace(tensor(dtype, shape), alignment=alignment) if size else EmptyType(dtype, shape)
        )
    one = replace(tensor(dtype, whole), alignment=alignment)
    lengths = [size * inner for size in sizes if size]
    sources: tuple[Source, ...]
    outputs: tuple[Output, ...]
    if joins:
        inputs, written = parts, {"y": one}
        sources = tuple(Source(rows * n, n) for n in lengths)
        outputs = (Output(tuple(Piece(n, k) for k, n in enumerate(lengths))),)
    else:
        inputs, written = {"x": one}, parts
        sources = (Source(prod(whole), sum(lengths)),)
        begins = accumulate(lengths, initial=0)
        outputs = tuple(Output((Piece(n, 0, b),)) for n, b in zip(lengths, begins, strict=False))
    word = word_bytes(element, alignment) // element
    movement = Movement(outputs, sources, (Axis(rows, rows),), word, element)
    return kernel_by_words(name, movement, inputs, written, f"{len(lengths)} tensors")
