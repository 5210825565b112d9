"""Transposes and other permutations of dimensions, of any size and any layout."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, TensorType
from lego_mlir.frontend.dtypes import check_dtype
from lego_mlir.kernels.permute.elementwise import elementwise
from lego_mlir.kernels.permute.heuristic import choose_strip, choose_tile
from lego_mlir.kernels.permute.kernel import copied, tiled
from lego_mlir.kernels.permute.problem import Move, find_move

VARIANTS = ("naive", "shared", "vector")

_BYTES = {"i8": 1, "f8E4M3FN": 1, "f8E5M2": 1, "f64": 8, "i64": 8, "f32": 4, "i32": 4}
_WIDEST = 16
"""Bytes of the widest access."""


def transpose(
    m: int,
    n: int,
    dtype: str = "f32",
    *,
    a: Layout | None = None,
    b: Layout | None = None,
    batch: int | None = None,
    variant: str | None = None,
    tile: int = 32,
    rows: int = 8,
    alignment: int = 16,
) -> Kernel:
    """A kernel that writes the transpose of an m×n matrix, or of a batch of them.

    Args:
        m: rows of the input.
        n: columns of the input.
        dtype: element type.
        a: where the input's elements lie, m×n, with a batch batch×m×n; row-major by default.
        b: where the output's elements lie, n×m, with a batch batch×n×m; row-major by default.
        batch: number of matrices, if they are more than a matrix.
        variant: `naive` and `shared` move one element at a time, as in the paper's Figure 13,
            straight or through shared memory; `vector` moves up to 16 bytes both ways. By default
            `vector` where both layouts are strides, else `shared`.
        tile: side of the square tile that a block of `naive` and `shared` moves; a power of two.
        rows: rows of it that its threads move at a time; a divisor of `tile`.
        alignment: of both arrays' addresses, in bytes, that `vector` relies on.

    Raises:
        LegoError: a size or a layout is not what it should be, or the layouts have no such variant.
    """
    lead = () if batch is None else (batch,)
    axes = (*range(len(lead)), len(lead) + 1, len(lead))
    source = _tensor("transpose", "a", (*lead, m, n), dtype, a, alignment)
    target = _tensor("transpose", "b", (*lead, n, m), dtype, b, alignment)
    if variant not in (*VARIANTS, None):
        raise LegoError(
            f"transpose: there is no variant {variant!r}", hint=f"known: {', '.join(VARIANTS)}"
        )
    reference = "transpose" if batch is None else _reference(axes)
    if variant in ("vector", None):
        move = find_move((*lead, m, n), axes, source.layout, target.layout)
        if move is not None:
            return _by_vectors("transpose", move, source, target, reference)
        if variant == "vector":
            raise LegoError(
                f"transpose: the layouts '{source.layout}' and '{target.layout}' are not both "
                "strides, as the variant 'vector' needs",
                hint="leave the variant out, or choose 'shared'",
            )
    if not _is_power(tile) or rows < 1 or tile % rows or tile * rows > 1024:
        raise LegoError(
            f"transpose: a tile of side {tile} is not moved {rows} rows at a time",
            hint="tile is a power of two, rows divides it, and a block has at most 1024 threads",
        )
    return elementwise(
        (*lead, m, n),
        TensorType(dtype, source.layout),
        TensorType(dtype, target.layout),
        tile,
        rows,
        staged=variant != "naive",
        reference=reference,
    )


def permute(
    shape: Sequence[int],
    axes: Sequence[int],
    dtype: str = "f32",
    *,
    a: Layout | None = None,
    b: Layout | None = None,
    alignment: int = 16,
) -> Kernel:
    """A kernel that writes a tensor with its dimensions in another order, as NumPy's transpose.

    Args:
        shape: of the input.
        axes: dimension k of the output is dimension axes[k] of the input.
        dtype: element type.
        a: where the input's elements lie, row-major by default; strides.
        b: where the output's elements lie, row-major by default; strides.
        alignment: of both arrays' addresses, in bytes.

    Raises:
        LegoError: the axes are no permutation, or a layout has no strides.
    """
    shape, axes = tuple(shape), tuple(axes)
    if sorted(axes) != list(range(len(shape))) or not shape:
        raise LegoError(
            f"permute: the axes {list(axes)} are no order of the {len(shape)} dimensions "
            f"{list(shape)}",
            hint="name each dimension once, counting from 0",
        )
    source = _tensor("permute", "a", shape, dtype, a, alignment)
    target = _tensor("permute", "b", tuple(shape[k] for k in axes), dtype, b, alignment)
    move = find_move(shape, axes, source.layout, target.layout)
    if move is None:
        raise LegoError(
            f"permute: the layouts '{source.layout}' and '{target.layout}' are not both strides"
        )
    return _by_vectors("permute", move, source, target, _reference(axes))


def _by_vectors(name: str, move: Move, a: TensorType, b: TensorType, reference: str) -> Kernel:
    size = _BYTES.get(a.dtype, 2)
    most = max(1, min(_WIDEST, a.alignment, b.alignment) // size)
    if move.is_copy:
        return copied(name, move, choose_strip(move, min(move.widths(most))), a, b, reference)
    return tiled(name, move, choose_tile(move, size, most), size, a, b, reference)


def _tensor(
    name: str, what: str, shape: tuple[int, ...], dtype: str, layout: Layout | None, alignment: int
) -> TensorType:
    """A parameter of this logical shape."""
    check_dtype(dtype)
    if any(n < 1 for n in shape):
        raise LegoError(f"{name}: {list(shape)} is no shape", hint="sizes are positive")
    chosen = OrderBy(Row(*shape)) if layout is None else layout
    if chosen.size != prod(shape):
        raise LegoError(
            f"{name}: the layout {what} = '{chosen}' has {chosen.size} elements, "
            f"the tensor {list(shape)} has {prod(shape)}"
        )
    if tuple(chosen.dims) != shape:
        chosen = chosen.TileBy(list(shape))
    return TensorType(dtype, chosen, alignment)


def _reference(axes: Sequence[int]) -> str:
    return f"permute({', '.join(map(str, axes))})"


def _is_power(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0
