"""Several tensors as one, and one as several: concatenate and split."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel
from lego_mlir.kernels.moves.axes import Axis
from lego_mlir.kernels.moves.windows import check, in_parts
from lego_mlir.kernels.public import public

MAX_PARTS = 64
"""Tensors of a launch: each is a branch of the kernel."""


@public
def concatenate(shapes: Sequence[Sequence[int]], axis: int = 0, dtype: str = "f32") -> Kernel:
    """Return a kernel `(x0, x1, …, y)`: y has the tensors behind one another along a dimension.

    Args:
        shapes: of the tensors, which differ along `axis` only.
        axis: the dimension, counted from 0.
        dtype: element type of all.

    Raises:
        LegoError: a size or a type is wrong, or shapes do not fit.
    """
    for shape in shapes:
        check("concatenate", shape, dtype)
    if not shapes or type(axis) is not int or not 0 <= axis < len(shapes[0]):
        raise LegoError(f"concatenate: {list(shapes)} have no dimension {axis} to join")
    first = list(shapes[0])
    for k, shape in enumerate(shapes):
        if [*shape[:axis], *shape[axis + 1 :]] != [*first[:axis], *first[axis + 1 :]]:
            raise LegoError(
                f"concatenate: tensor {k} has the shape {list(shape)}, tensor 0 {first}",
                hint=f"they may differ along dimension {axis} only",
            )
    sizes = [shape[axis] for shape in shapes]
    whole = [*first[:axis], sum(sizes), *first[axis + 1 :]]
    return _in_parts("concatenate", whole, axis, sizes, dtype, joins=True)


@public
def split(shape: Sequence[int], sizes: Sequence[int], axis: int = 0, dtype: str = "f32") -> Kernel:
    """Return a kernel `(x, y0, y1, …)`: the y are the pieces of x along a dimension.

    Args:
        shape: sizes of x.
        sizes: of the pieces along `axis`; their sum is that of x.
        axis: the dimension, counted from 0.
        dtype: element type of all.

    Raises:
        LegoError: a size or a type is wrong.
    """
    check("split", shape, dtype)
    check("split", sizes)
    if type(axis) is not int or not 0 <= axis < len(shape) or sum(sizes) != shape[axis]:
        raise LegoError(
            f"split: pieces of {list(sizes)} are not dimension {axis} of {list(shape)}",
            hint="the sizes of the pieces add up to that of the dimension",
        )
    return _in_parts("split", list(shape), axis, sizes, dtype, joins=False)


def _in_parts(
    name: str, whole: Sequence[int], axis: int, sizes: Sequence[int], dtype: str, *, joins: bool
) -> Kernel:
    if any(n is None for n in (*whole, *sizes)) or len(sizes) > MAX_PARTS:
        raise LegoError(
            f"{name}: {len(sizes)} tensors, of the sizes {list(sizes)}",
            hint=f"at most {MAX_PARTS}, and all sizes are known",
        )
    parts = []
    for size, first in zip(sizes, accumulate(sizes, initial=0), strict=False):
        axes = [Axis(n, n) for n in whole]
        axes[axis] = Axis(whole[axis], size, first)
        parts.append(axes)
    return in_parts(name, dtype, parts, joins=joins)
