"""What finds or orders elements of rows: argmax, the k greatest, and cumulative sums."""

from __future__ import annotations

from math import inf
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import ceildiv
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelChoice, kernel
from lego_mlir.frontend.tiles.sorting import SEARCHED, is_searched
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.kernels.public import NUMBERS_IN_F32, check_types, public
from lego_mlir.kernels.rows.bodies.piece import as_dtype, divided
from lego_mlir.kernels.rows.builder import RowsKernel
from lego_mlir.kernels.rows.builder import rows as rows_kernel
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.lengths import (
    RowLengths,
    multiples_of,
    of_any_length,
    powers_of_two,
)
from lego_mlir.kernels.rows.problem import Argument, Combination, RowsProblem, Stat, typed

_HELD, _MOST_WARPS = 8, 8
"""Elements of a row that a thread adds up at once, and warps of a CTA."""

_SORTED, _LEAST_WARPS, _SORTING_WARPS = 8, 2, 16
"""Elements of a row that a thread sorts, and warps of a CTA."""

_SEARCHED = ((1, 16), (4, 32), (_SORTING_WARPS, SEARCHED))
"""Warps up to which threads search so many elements of a row each."""

_NOWHERE = (1 << 31) - 1
"""The index of no element."""

_MOST_SORTED = 8192
"""The longest rows that are sorted where only the launch knows how long they are."""


@public
def argmax(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    config: RowsConfig | None = None,
) -> RowsKernel:
    """Return a kernel `(x, index, most)`: the first greatest element of each row, and its index.

    NaN is greater than any number, as in PyTorch.

    Args:
        rows: of x; `None` if each launch has its own number.
        columns: of x; `None` as for rows.
        dtype: element type of x. The index is of i32, the greatest element of f32.
        config: its tiles; by default the heuristic chooses.

    Raises:
        LegoError: a size or a type is wrong.
    """
    check_types("argmax", NUMBERS_IN_F32, dtype=dtype)
    return rows_kernel(
        (rows, columns),
        name="argmax",
        arguments={
            "x": Argument(dtype),
            "index": Argument("i32", "row"),
            "most": Argument("f32", "row"),
        },
        load=lambda x: x.to("f32"),
        stats={
            "first": Stat(
                lambda row, column_index: (row, lg.broadcast_to(column_index, row.shape)),
                Combination(_first, (-inf, _NOWHERE)),
            )
        },
        results=lambda first: {"most": first[0], "index": first[1]},
        config=config,
    )


def _first(a: Any, b: Any) -> Any:
    """Return the greater of two elements with their indices; of equal ones the first."""
    (x, i), (y, j) = a, b
    x_is_nan, y_is_nan = x != x, y != y
    is_greater = ((x > y) | x_is_nan) & ~y_is_nan
    is_same = (x == y) | (x_is_nan & y_is_nan)
    stays = is_greater | (is_same & (i < j))
    return lg.where(stays, x, y), lg.where(stays, i, j)


@public
def cumsum(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    out: str | None = None,
    in_place: bool = False,
) -> Kernel | KernelChoice:
    """Return a kernel `(x, y)`: y is the sum of each row's elements up to each one, added in f32.

    Args:
        rows: of the matrices; `None` if each launch has its own number.
        columns: of the matrices; `None` as for rows.
        dtype: element type of x.
        out: element type of y; by default that of x.
        in_place: y may be x.

    Raises:
        LegoError: a size or a type is wrong.
    """
    check_types("cumsum", NUMBERS_IN_F32, dtype=dtype)
    check_types("cumsum", out=out or dtype)
    arguments = {"x": Argument(dtype), "y": Argument(out or dtype)}

    def made(columns: int | RowLengths) -> Kernel:
        problem = RowsProblem("cumsum", rows, columns, arguments, load=lambda x: x)
        longest = problem.longest
        warps = min(_MOST_WARPS, max(1, longest // (_HELD * WARP_THREADS)))
        width = min(longest, warps * WARP_THREADS * _HELD * 2)

        def cumsum(x: Any, y: Any) -> None:
            row = lg.block_id()

            def add(number: Any, before: Any) -> Any:
                sums = lg.cumsum(x.tile(1, width)[row, number].to("f32"), axis=1) + before
                y.tile(1, width)[row, number] = sums.to(out or dtype)
                is_last = lg.iota((1, width), 1) == width - 1
                last: Any = lg.where(is_last, sums, 0.0)
                return lg.sum(last, axis=1, keepdims=True)

            whole, has_rest = divided(x.shape[1], width)
            before = lg.fold(whole, lg.zeros((1, 1), "f32"))(add)
            if has_rest:
                add(whole, before)

        return kernel(
            grid=problem.grid(lambda rows, _: rows),
            warps=warps,
            parameters={name: problem.tensor(name) for name in arguments},
            in_place=in_place,
        )(cumsum)

    if columns is not None:
        return made(columns)
    multiples = multiples_of(max(a.bytes for a in arguments.values()))
    whole = powers_of_two(16, _MOST_WARPS * WARP_THREADS * _HELD * 2)
    return of_any_length("cumsum", made(RowLengths()).parameters(), made, whole, multiples)


@public
def topk(
    rows: int | None,
    columns: int | None,
    dtype: str = "f32",
    *,
    k: int,
    softmax: bool = False,
) -> Kernel | KernelChoice:
    """Return a kernel `(x, values, index)`: the k greatest elements of each row, in order.

    Of equal elements those at lower indices come first; NaN is greater than all numbers.

    Args:
        rows: of the matrices; `None` if each launch has its own number.
        columns: of x, as many as the registers of a CTA hold; `None` as for rows, of up to 8192.
        dtype: element type of x and values. The indices are of i32.
        k: how many, at most `columns`.
        softmax: whether the values become those of softmax among them.

    Raises:
        LegoError: a size or a type is wrong.
    """
    if type(k) is not int or k < 1 or (type(columns) is int and k > columns):
        most = "on" if columns is None else f"to the {columns} columns"
        raise LegoError(f"topk: k is a number from 1 {most}, not {k!r}")
    arguments = {"x": Argument(dtype)}

    def made(columns: int | RowLengths) -> Kernel:
        problem = RowsProblem("topk", rows, columns, arguments, load=lambda x: x)
        longest = problem.longest
        threads = _threads(longest, k, dtype)
        least = 1 if is_searched(longest, k, dtype) else _LEAST_WARPS
        warps = min(_SORTING_WARPS, max(least, threads // WARP_THREADS))
        held = max(1, warps * WARP_THREADS // threads)

        def topk(x: Any, values: Any, index: Any) -> None:
            block = lg.block_id()
            found: Any
            found, places = lg.topk(x.tile(held, longest)[block, 0], k, axis=1)
            if softmax:
                found = as_dtype(found, "f32")
                found = lg.exp(found - lg.max(found, axis=1, keepdims=True))
                found = found * (1.0 / lg.sum(found, axis=1, keepdims=True))
            values.tile(held, k)[block, 0] = as_dtype(found, dtype)
            index.tile(held, k)[block, 0] = places

        return kernel(
            grid=problem.grid(lambda rows, _: ceildiv(rows, held)),
            warps=warps,
            parameters={
                "x": problem.tensor("x"),
                "values": typed(dtype, f"{problem.rows_text}, {k}"),
                "index": typed("i32", f"{problem.rows_text}, {k}"),
            },
        )(topk)

    if columns is not None:
        return made(columns)
    classes = powers_of_two(max(_SORTED, k), _MOST_SORTED)
    if not classes:
        raise LegoError(f"topk: k is at most {_MOST_SORTED} of rows of any length, not {k}")
    multiples = multiples_of(arguments["x"].bytes)
    parameters = made(RowLengths()).parameters()
    return of_any_length("topk", parameters, made, classes, multiples, (k, classes[-1]))


def _threads(columns: int, k: int, dtype: str) -> int:
    """Return how many threads find the k greatest elements of a row: a power of two.

    More elements a thread make a search shorter, since each step adds up what threads count.
    """

    def of(held: int) -> int:
        return 1 << (-(-columns // held) - 1).bit_length()

    if not is_searched(columns, k, dtype):
        return of(_SORTED)
    choices = ((warps * WARP_THREADS, of(held)) for warps, held in _SEARCHED)
    return next((n for limit, n in choices if n <= limit), _SORTING_WARPS * WARP_THREADS)
