"""Partial tiles and slices in traced kernels, run in the simulator on every element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

M, N, T = 50, 35, 16


def tiled(rows: int, columns: int, order: Any, tile: tuple[int, int]) -> lg.Layout:
    cover = [lg.ceildiv(rows, tile[0]), lg.ceildiv(columns, tile[1])]
    return order(rows, columns).TileBy(cover, tile)


def row(rows: int, columns: int) -> lg.Layout:
    return lg.OrderBy(lg.Row(rows, columns))


def column(rows: int, columns: int) -> lg.Layout:
    return lg.OrderBy(lg.Col(rows, columns))


def swizzled(rows: int, columns: int) -> lg.Layout:
    return lg.OrderBy(lg.GenP([rows, columns], lg.swizzle(4, 1, 4)))


def blocked(rows: int, columns: int) -> lg.Layout:
    return lg.OrderBy(lg.Col(rows // 5, columns // 5), lg.Row(5, 5))


def random(shape: tuple[int, int], dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)


def test_transpose_of_partial_tiles() -> None:
    a, b = tiled(M, N, row, (T, T)), tiled(N, M, row, (T, T))
    blocks = lg.OrderBy(lg.Row(lg.ceildiv(M, T), lg.ceildiv(N, T)))
    threads = lg.OrderBy(lg.Row(T, T))

    def transpose(x: Any, y: Any) -> None:
        m, n = blocks.inv(lg.block_id())
        i, j = threads.inv(lg.thread_id())
        y[n, m, j, i] = x[m, n, i, j]

    kernel = lg.kernel(
        grid=blocks.size,
        block=threads.size,
        reference="transpose",
        parameters={"x": lg.Tensor["f32", a], "y": lg.Tensor["f32", b]},
    )(transpose)
    assert kernel.grid == (12, 1, 1)
    x, y = random((M, N)), np.full((N, M), np.nan, np.float32)
    kernel(x, y, device="sim")
    assert (y == x.T).all()
    comparison = kernel.run(device="sim").comparison
    assert comparison is not None
    assert comparison.equal


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8", "f64"])
@pytest.mark.parametrize(
    ("source", "target", "shape", "tile"),
    [
        (row, row, (64, 32), (16, 8)),
        (row, column, (64, 32), (16, 8)),
        (swizzled, row, (64, 32), (16, 16)),
        (row, row, (50, 36), (16, 8)),
        (row, column, (50, 35), (16, 8)),
        (blocked, row, (50, 35), (16, 8)),
    ],
)
def test_copies_by_rows(source: Any, target: Any, shape: Any, tile: Any, dtype: str) -> None:
    """Thread i of a block copies row i of its tile, as one vector."""
    a, b = tiled(*shape, source, tile), tiled(*shape, target, tile)
    blocks = lg.OrderBy(lg.Row(*a.dims[:2]))

    def copy(x: Any, y: Any) -> None:
        m, n = blocks.inv(lg.block_id())
        y[m, n, lg.thread_id(), :] = x[m, n, lg.thread_id(), :]

    parameters = {"x": lg.Tensor[dtype, a], "y": lg.Tensor[dtype, b]}
    kernel = lg.kernel(grid=blocks.size, block=tile[0], parameters=parameters)(copy)
    kind = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "f64": np.float64}[dtype]
    x = random(shape, kind)
    result = kernel.run(x, device="sim")
    assert (result.outputs["y"] == x).all()


def test_vectors_are_computed_with() -> None:
    layout = tiled(8, 30, row, (4, 4))
    blocks = lg.OrderBy(lg.Row(2, 8))

    def update(x: Any, y: Any, factor: Any) -> None:
        m, n = blocks.inv(lg.block_id())
        tile = x[m, n, ...]
        y[m, n, :, :] = factor * tile + tile * tile - 3

    parameters = {
        "x": lg.Tensor["i32", layout],
        "y": lg.Tensor["i32", layout],
        "factor": lg.Scalar["i32"],
    }
    kernel = lg.kernel(grid=16, block=1, parameters=parameters)(update)
    x, y = random((8, 30), np.int32), np.zeros((8, 30), np.int32)
    kernel(x, y, np.int32(7), device="sim")
    assert (y == 7 * x + x * x - 3).all()


def test_the_mask_and_the_offset_of_kernel_values() -> None:
    layout = lg.OrderBy(lg.Row(10)).TileBy([3], [4])

    def kernel(x: Any) -> None:
        exists = layout.mask(lg.block_id(), lg.thread_id())
        assert exists.dtype == "i1"
        piece = layout[lg.block_id(), :]
        assert piece.contiguous == 4
        assert piece.offset(lg.thread_id()).dtype == "index"
        x[lg.block_id(), lg.thread_id()] = 1

    traced = lg.kernel(grid=3, block=4, parameters={"x": lg.Tensor["i32", layout]})(kernel)
    text = str(traced.module)
    assert '"lego.mask"' in text
    assert '"lego.apply"' in text
    x = np.zeros(10, np.int32)
    traced(x, device="sim")
    assert (x == 1).all()


def _part(x: Any) -> None:
    x[0, 0:2]


def _wrong_sizes(x: Any) -> None:
    x[0, :] = x[:, 0]


def _wrong_rank(x: Any) -> None:
    x[:, :, 0]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (_part, "tensor 'x': .*only ':' is known"),
        (_wrong_sizes, "vector<4xf32> is needed, not vector<3xf32>"),
        (_wrong_rank, "tensor 'x': .* takes 2 indices"),
    ],
)
def test_wrong_slices_are_errors_with_a_location(body: Any, says: str) -> None:
    layout = lg.OrderBy(lg.Row(3, 4))
    kernel = lg.kernel(grid=1, block=1, parameters={"x": lg.Tensor["f32", layout]})(body)
    with pytest.raises(LegoError, match=says) as caught:
        _ = kernel.module
    assert caught.value.location is not None
    assert caught.value.location.file.endswith("test_slices.py")
