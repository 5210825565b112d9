"""Vectors inside kernels: their parts, their transpose, and how wide their accesses are."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

MATRIX = lg.OrderBy(lg.Row(4, 8))
FLAT = lg.OrderBy(lg.Row(32))


def run(function: Any, *shapes: tuple[int, ...], layouts: Any = (MATRIX, MATRIX)) -> Any:
    """What a kernel of one thread makes of 0, 1, 2, …"""
    kinds = [lg.TensorType("f32", layout) for layout in layouts]
    kernel = lg.kernel(grid=1, block=1, parameters=dict(zip("ab", kinds, strict=True)))(function)
    x = np.arange(32, dtype=np.float32).reshape(shapes[0])
    y = np.full(shapes[1], np.nan, dtype=np.float32)
    kernel(x, y, device="sim")
    return x, y


def test_the_transpose_of_a_vector() -> None:
    def kernel(a: Any, b: Any) -> None:
        b[:, :] = a[:, :].T

    x, y = run(kernel, (4, 8), (8, 4), layouts=(MATRIX, lg.OrderBy(lg.Row(8, 4))))
    assert (y == x.T).all()


def test_rows_and_elements() -> None:
    def kernel(a: Any, b: Any) -> None:
        v = a[:, :]
        for i in range(4):
            b[i, :] = v[3 - i]
        b[0, 0] = v[-1, 2]

    x, y = run(kernel, (4, 8), (4, 8))
    want = x[::-1].copy()
    want[0, 0] = x[-1, 2]
    assert (y == want).all()


@pytest.mark.parametrize(
    ("dtype", "width", "streamed"), [("f32", 4, 8), ("f16", 8, 4), ("f16", 4, 0), ("f32", 1, 0)]
)
def test_streamed_loads_have_16_bytes(dtype: str, width: int, streamed: int) -> None:
    """Others are as they are without it."""
    layout = lg.OrderBy(lg.Row(32 // width, width))
    kinds = {name: lg.TensorType(dtype, layout, 16) for name in "ab"}

    @lg.kernel(grid=1, block=1, parameters=kinds)
    def kernel(a: Any, b: Any) -> None:
        for k in range(32 // width):
            b[k, :] = a.streamed()[k, :] + a[k, :]

    for target, prefetched in (("sm_75", 128), ("sm_80", 256)):
        ptx = kernel.compile(target).ptx  # assembled: older GPUs bring fewer bytes at a time
        assert ptx.count(f"ld.global.L1::no_allocate.L2::{prefetched}B.v4.b32") == streamed
    x = np.arange(32).reshape(-1, width).astype("f2" if dtype == "f16" else "f4")
    y = np.full_like(x, np.nan)
    kernel(x, y, device="sim")
    assert (y == 2 * x).all()


def test_another_view_of_the_same_memory() -> None:
    columns = lg.OrderBy(lg.Col(8, 4))

    def kernel(a: Any, b: Any) -> None:
        b[:, :] = a.view(columns)[:, :]

    x, y = run(kernel, (4, 8), (8, 4), layouts=(MATRIX, lg.OrderBy(lg.Row(8, 4))))
    assert (y == x.T).all()


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda a: a[0, 0].T, "'.T' is for vectors, not f32"),
        (lambda a: a[0, 0][0], "'\\[\\]' is for vectors, not f32"),
        (lambda a: a[0, :][8], "index \\[8\\] is not inside of the vector vector<8xf32>"),
        (lambda a: a[0, :][0, 0], "index \\[0, 0\\] is not inside of the vector vector<8xf32>"),
        (lambda a: a.view(lg.OrderBy(lg.Row(31))), "has 32 elements, .* of its view 31"),
    ],
)
def test_wrong_vector_operations_are_errors(use: Any, says: str) -> None:
    def kernel(a: Any, b: Any) -> None:
        use(a)

    with pytest.raises(LegoError, match=says):
        run(kernel, (4, 8), (4, 8))


def accesses(alignment: int, layout: lg.Layout, shared: lg.Layout | None = None) -> Counter[str]:
    """The memory instructions of a copy of slices of 8 elements."""

    @lg.kernel(
        grid=1,
        block=16,
        parameters={
            "a": lg.TensorType("f16", layout, alignment),
            "b": lg.TensorType("f16", layout, alignment),
        },
    )
    def copy(a: Any, b: Any) -> None:
        value = a[lg.thread_id(), :]
        if shared is not None:
            buffer = lg.shared("f16", shared)
            buffer[lg.thread_id(), :] = value
            value = buffer[lg.thread_id(), :]
        b[lg.thread_id(), :] = value

    return Counter(re.findall(r"(?:ld|st)\.(?:global|shared)\.(\S*)", copy.compile().ptx))


@pytest.mark.parametrize(
    ("alignment", "widths"),
    [(16, {"v4.b32": 2}), (8, {"v2.b32": 4}), (4, {"b32": 8}), (2, {"b16": 16}), (1, {"b16": 16})],
)
def test_accesses_are_as_wide_as_the_buffer_is_aligned(alignment: int, widths: Any) -> None:
    assert accesses(alignment, lg.OrderBy(lg.Row(16, 8))) == widths


def test_accesses_are_as_wide_as_the_offset_is_known_to_be() -> None:
    """Rows of 8 elements at every 12th begin at multiples of 8 bytes, at every 9th of none."""
    twelfth = lg.OrderBy(lg.Row(16, 12)).TileBy([16, lg.ceildiv(12, 8)], [1, 8])
    ninth = lg.OrderBy(lg.Row(16, 9)).TileBy([16, lg.ceildiv(9, 8)], [1, 8])

    def widths(layout: lg.Layout) -> set[str]:
        kind = lg.TensorType("f16", layout, 16)

        @lg.kernel(grid=1, block=16, parameters={"a": kind, "b": kind})
        def copy(a: Any, b: Any) -> None:
            b[lg.thread_id(), 0, 0, :] = a[lg.thread_id(), 0, 0, :]

        return set(re.findall(r"(?:ld|st)\.global\.(\S*)", copy.compile().ptx))

    assert widths(twelfth) == {"v2.b32"}
    assert widths(ninth) == {"b16"}


def test_shared_memory_is_aligned_by_itself() -> None:
    swizzled = lg.OrderBy(lg.GenP([16, 8], lg.swizzle(4, 1, 2)))
    in_shared = accesses(16, lg.OrderBy(lg.Row(16, 8)), swizzled) - Counter({"v4.b32": 2})
    assert set(in_shared) == {"v2.b32"}


def test_whole_tiles_ask_once_for_all_of_their_elements() -> None:
    """A tile that lies inside is read at once; at the edge each row is checked."""
    tiled = lg.OrderBy(lg.Row(13, 6)).TileBy([lg.ceildiv(13, 4), 1], [4, 6])
    kind = lg.TensorType("f32", tiled)

    @lg.kernel(grid=4, block=1, parameters={"a": kind, "b": kind})
    def copy(a: Any, b: Any) -> None:
        b[lg.block_id(), 0, :, :] = a[lg.block_id(), 0, :, :]

    x = np.arange(78, dtype=np.float32).reshape(13, 6)
    y = np.full_like(x, np.nan)
    copy(x, y, device="sim")
    assert (y == x).all()
    index = copy.compilation().text("index")
    assert Counter(re.findall(r"vector\.(?:load|store)", index)) == {
        "vector.load": 4 + 3,
        "vector.store": 1 + 3,
    }, "once for whole tiles, once row by row without the last, which whole tiles alone have"


@pytest.mark.parametrize("alignment", [0, 3, -4])
def test_an_alignment_is_a_power_of_two(alignment: int) -> None:
    with pytest.raises(LegoError, match=f"a power of two in bytes, not {alignment}"):
        lg.TensorType("f32", FLAT, alignment)
