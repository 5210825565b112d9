"""Dots by mma.sync, and conversions by ldmatrix and stmatrix, run in the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from tile_kernels import compiled, kernel, load, outputs, store, tile

import lego_mlir as lg
from lego_mlir.analysis.distributed import (
    coalesced,
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
    transposed,
)

Grid = tuple[int, int]
Sizes = tuple[int, int, int]


def dot(
    sizes: Sizes, grid: Grid, dtype: type, *, is_b_transposed: bool = False
) -> tuple[str, dict[str, np.ndarray], np.ndarray]:
    """Return a kernel of one dot of row-major tensors, its arguments, and the expected result."""
    m, n, k = sizes
    warps, rng = grid[0] * grid[1], np.random.default_rng(0)
    is_integer = np.issubdtype(dtype, np.integer)

    def random(*shape: int) -> np.ndarray:
        values = rng.integers(-9, 10, shape) if is_integer else rng.standard_normal(shape)
        return values.astype(dtype)

    given = {"x": random(m, k), "y": random(*((n, k) if is_b_transposed else (k, n)))}
    sums = np.zeros((m, n), np.int32 if is_integer else np.float32)
    arguments = {**given, "z": sums}
    bits = given["x"].itemsize * 8
    element, total = ("i8", "i32") if is_integer else ("f16", "f32")
    x_rows, y_rows = (coalesced(v.shape, bits // 8, warps) for v in given.values())
    z_rows = coalesced(sums.shape, 4, warps)
    y_loaded, y_view = tile(y_rows, element), transposed(y_rows) if is_b_transposed else y_rows
    a, b = (
        tile(mma_operand_a((m, k), bits, grid), element),
        tile(mma_operand_b((k, n), bits, grid), element),
    )
    c, x_type, z_type = (
        tile(mma_accumulator((m, n), grid), total),
        tile(x_rows, element),
        tile(z_rows, total),
    )
    y_type = tile(y_view, element)
    view = (
        f'%yv = "lego.transpose"(%y0) {{order = array<i64: 1, 0>}} : ({y_loaded}) -> {y_type}'
        if is_b_transposed
        else ""
    )
    body = f"""
    %x0 = {load(arguments, "x", x_type)}
    %y0 = {load(arguments, "y", y_loaded)}
    {view}
    %a = "lego.convert"(%x0) : ({x_type}) -> {a}
    %bb = "lego.convert"(%y{"v" if is_b_transposed else "0"}) : ({y_type}) -> {b}
    %zero = arith.constant dense<0{"" if is_integer else ".0"}> : {c}
    %d = "lego.dot"(%a, %bb, %zero) : ({a}, {b}, {c}) -> {c}
    %r = "lego.convert"(%d) : ({c}) -> {z_type}
    {store(arguments, "z", "%r", z_type)}
"""
    wide = [v.astype(np.int64 if is_integer else np.float64) for v in given.values()]
    expected = wide[0] @ (wide[1].T if is_b_transposed else wide[1])
    return kernel(arguments, warps, body), arguments, expected


CASES = [
    ((16, 8, 16), (1, 1), np.float16),
    ((64, 64, 64), (2, 2), np.float16),
    ((128, 64, 32), (4, 1), np.float16),
    ((32, 96, 48), (2, 1), np.float16),
    ((32, 32, 64), (2, 2), np.int8),
]


@pytest.mark.parametrize(("sizes", "grid", "dtype"), CASES)
@pytest.mark.parametrize("is_b_transposed", [False, True])
@pytest.mark.parametrize("order", ["late", "early"])
def test_dots(sizes: Sizes, grid: Grid, dtype: type, order: str, *, is_b_transposed: bool) -> None:
    text, arguments, expected = dot(sizes, grid, dtype, is_b_transposed=is_b_transposed)
    found = outputs(text, arguments, order)["z"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_operands_come_by_ldmatrix() -> None:
    """Rows of B run along n in memory: ldmatrix transposes them, and nothing else is needed."""
    text, _, _ = dot((64, 64, 64), (2, 2), np.float16)
    ptx = compiled(text).ptx
    assert ptx.count("ldmatrix.sync.aligned.m8n8.x4.trans") == 8
    assert ptx.count("mma.sync.aligned.m16n8k16") == 4 * 4 * 4 * 2 // 4
    assert "ld.shared.b16" not in ptx
    assert "ld.shared.u16" not in ptx


@pytest.mark.parametrize("warps", [1, 2, 3, 4, 8])
def test_warps_that_a_small_dot_leaves_over_compute_the_same(warps: int) -> None:
    """A result of 16 × 16 has two parts of an instruction's shape."""
    square, result = lg.Tensor["f16", (16, 16)], lg.Tensor["f32", (16, 16)]

    def twice(a, b, c):
        @lg.fold(2, lg.zeros((16, 16), "f32"))
        def total(k, total):
            return lg.dot(a[:, :].T, b[:, :], total)

        c[:, :] = total

    types = {"a": square, "b": square, "c": result}
    kernel = lg.kernel(grid=1, warps=warps, parameters=types)(twice)
    a, b = np.random.default_rng(0).integers(-4, 5, (2, 16, 16)).astype(np.float16)
    c = np.full((16, 16), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, 2 * (a.T.astype(np.float32) @ b))
