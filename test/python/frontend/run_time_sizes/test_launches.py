"""Kernels whose sizes only the launch knows, in the simulator: right for any sizes, compiled for
few classes of them, and launches that break a promise are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import GenP, LegoError, OrderBy, Row, runtime, swizzle
from lego_mlir.compiler.tile_stages import PLACING

SHAPES = 200

BOUNDED = lg.Tensor["f32", "M, N<=128|512", 4]
MATRIX = lg.Tensor["f32", "M, N", 4]
FLIPPED = lg.Tensor["f32", "N, M", 4]
HALVES = lg.Tensor["f16", "N", 2]
LINE = lg.Tensor["f32", "N", 4]
TABLE = lg.Tensor["f32", "V, D<=64|256", 4]
WORDS = lg.Tensor["i32", "T", 4]
VECTORS = lg.Tensor["f32", "T, D", 4]
ANY_STRIDES = lg.Tensor["f32", "M, N : S, T", 4]
ROW_STRIDES = lg.Tensor["f32", "M, N : U, 1", 4]
MULTIPLE = lg.Tensor["f32", "M, N{16}<=64"]
ROWS = lg.Tensor["f32", "M, N"]


def shapes(most: tuple[int, int], count: int = SHAPES) -> list[tuple[int, int]]:
    """Return random shapes, among them the least and the largest ones."""
    rng = np.random.default_rng(7)
    drawn = [tuple(int(rng.integers(1, n, endpoint=True)) for n in most) for _ in range(count - 4)]
    return [(1, 1), (1, most[1]), (most[0], 1), most, *drawn]  # type: ignore[list-item]


def random(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32).astype(dtype)


@lg.kernel(grid=lambda x: x.shape[0], warps=4)
def softmax(x: BOUNDED, y: MATRIX) -> None:
    row = x[lg.block_id(), :]
    e = lg.exp(row - lg.max(row))
    y[lg.block_id(), :] = e / lg.sum(e)


def softmax_of(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_a_softmax_of_any_shape() -> None:
    for shape in shapes((4, 512)):
        x = random(shape)
        y = np.full_like(x, np.nan)
        softmax(x, y, device="sim")
        np.testing.assert_allclose(y, softmax_of(x), rtol=2e-5, err_msg=str(shape))
    assert 1 < len(softmax.classes()) <= 4


SIDE = 32


@lg.kernel(grid=lambda x: tuple(lg.ceildiv(n, SIDE) for n in reversed(x.shape)), warps=4)
def transpose(x: MATRIX, y: FLIPPED) -> None:
    n, m = lg.block_id("x"), lg.block_id("y")
    y.tile(SIDE, SIDE)[n, m] = x.tile(SIDE, SIDE)[m, n].T


def test_a_transpose_of_any_shape() -> None:
    for shape in shapes((70, 70)):
        x = random(shape)
        y = np.full_like(x.T, np.nan, order="C")
        transpose(x, y, device="sim")
        np.testing.assert_array_equal(y, x.T, err_msg=str(shape))
    assert len(transpose.classes()) <= 4


A, B = lg.Tensor["f16", "M, K", 2], lg.Tensor["f16", "K, N", 2]


@lg.kernel(grid=lambda c: (lg.ceildiv(c.shape[1], 32), lg.ceildiv(c.shape[0], 16)), warps=1)
def gemm(a: A, b: B, c: MATRIX) -> None:
    n, m = lg.block_id("x"), lg.block_id("y")

    @lg.fold(lg.ceildiv(a.shape[1], 32), lg.zeros((16, 32), "f32"))
    def total(k: Any, total: Any) -> Any:
        return lg.dot(a.tile(16, 32)[m, k], b.tile(32, 32)[k, n], total)

    c.tile(16, 32)[m, n] = total


def test_a_gemm_of_any_shape() -> None:
    depths = np.random.default_rng(3).integers(1, 70, SHAPES)
    for (m, n), k in zip(shapes((40, 70)), map(int, depths), strict=True):
        a, b = random((m, k), np.float16), random((k, n), np.float16)
        c = np.full((m, n), np.nan, np.float32)
        gemm(a, b, c, device="sim")
        expected = a.astype(np.float32) @ b.astype(np.float32)
        np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3, err_msg=str((m, n, k)))
    assert 1 < len(gemm.classes()) <= 4


TILES = lg.parse_layout("OrderBy(Row(M, N)).TileBy([ceildiv(M, 32), ceildiv(N, 32)], [32, 32])")
TRANSPOSED = lg.parse_layout(
    "OrderBy(Row(N, M)).TileBy([ceildiv(N, 32), ceildiv(M, 32)], [32, 32])"
)
TILED, TILED_FLIPPED = lg.Tensor["f32", TILES], lg.Tensor["f32", TRANSPOSED]
BLOCKS = lg.parse_layout("OrderBy(Row(ceildiv(M, 32), ceildiv(N, 32)))")
THREADS, SWIZZLED = OrderBy(Row(8, 32)), OrderBy(GenP([32, 32], swizzle))


@lg.kernel(grid=BLOCKS.size, block=THREADS.size)
def transpose_by_threads(a: TILED, b: TILED_FLIPPED) -> None:
    m, n = BLOCKS.inv(lg.block_id())
    row, column = THREADS.inv(lg.thread_id())
    tile = lg.shared("f32", SWIZZLED)
    rows = OrderBy(Row(4, 8))
    for step in lg.loop(4):
        i = rows.apply(step, row)
        tile[i, column] = a[m, n, i, column]
    lg.barrier()
    for step in lg.loop(4):
        i = rows.apply(step, row)
        b[n, m, i, column] = tile[column, i]


def test_a_transpose_by_threads_of_any_shape() -> None:
    for shape in shapes((70, 70)):
        x = random(shape)
        y = np.full_like(x.T, np.nan, order="C")
        transpose_by_threads(x, y, device="sim")
        np.testing.assert_array_equal(y, x.T, err_msg=str(shape))
    assert len(transpose_by_threads.classes()) <= 4


@lg.kernel(grid=lambda x: lg.ceildiv(x.shape[0], 256), warps=4)
def halved(x: HALVES, y: HALVES) -> None:
    y.tile(256)[lg.block_id()] = x.tile(256)[lg.block_id()] / 2


@lg.kernel(grid=lambda x: lg.ceildiv(x.shape[0], 32), warps=4)
def column_sums(x: FLIPPED, y: LINE) -> None:
    i = lg.block_id()

    @lg.fold(x.tile(32, 32).shape[1], lg.zeros((32, 32), "f32"))
    def total(k: Any, total: Any) -> Any:
        return total + lg.fill(x.tile(32, 32)[i, k], 0.0)

    y.tile(32)[i] = lg.sum(total, axis=1) / x.shape[1].to("f32")


@lg.kernel(grid=lambda out: out.shape[0], warps=2)
def embedding(
    table: TABLE,
    words: WORDS,
    out: VECTORS,
) -> None:
    i = lg.block_id()
    out[i, :] = table[words[i].below(1 << 30), :]


@pytest.mark.parametrize("n", [1, 5, 255, 256, 257, 1000, 1024])
def test_lines_of_any_length(n: int) -> None:
    x = random((n,), np.float16)
    y = np.zeros_like(x)
    halved(x, y, device="sim")
    np.testing.assert_array_equal(y, x / 2)


@pytest.mark.parametrize("shape", [(1, 1), (33, 100), (64, 64), (31, 97)])
def test_loops_over_tiles_of_any_number(shape: tuple[int, int]) -> None:
    x = random(shape)
    y = np.zeros(shape[0], np.float32)
    column_sums(x, y, device="sim")
    np.testing.assert_allclose(y, x.mean(axis=1), rtol=1e-4, atol=1e-6)


@lg.kernel(grid=lambda x: (lg.ceildiv(x.shape[1], 64), lg.ceildiv(x.shape[0], 16)), warps=2)
def copy(x: ANY_STRIDES, y: ROW_STRIDES) -> None:
    n, m = lg.block_id("x"), lg.block_id("y")
    y.tile(16, 64)[m, n] = x.tile(16, 64)[m, n]


STRIDED: list[Callable[[Any], Any]] = [
    lambda x: x,
    lambda x: x[:, :48],
    lambda x: x[3:, 5:],
    lambda x: x.T,
    lambda x: x[::2, ::3],
    lambda x: x[:1],
    lambda x: x[:, :1],
]


@pytest.mark.parametrize("view", STRIDED, ids=map(str, range(len(STRIDED))))
def test_strides_of_any_kind(view: Callable[[Any], Any]) -> None:
    x = view(random((40, 96)))
    whole = np.full((x.shape[0] + 1, x.shape[1] + 16), 7, np.float32)
    y = whole[: x.shape[0], 8 : 8 + x.shape[1]]
    copy(x, y, device="sim")
    np.testing.assert_array_equal(y, x)
    y[:] = 7
    assert (whole == 7).all()  # nothing beside the view was written


def test_run_gives_arrays_that_are_missing_their_sizes() -> None:
    x = random((3, 100))
    result = softmax.run(x, device="sim")
    np.testing.assert_allclose(result.outputs["y"], softmax_of(x), rtol=2e-5)
    with pytest.raises(LegoError, match="no array says what the size M is") as info:
        softmax.run(device="sim")
    assert (info.value.hint or "").startswith("pass one for argument 'x', or")


# Launches that break a promise.
@lg.kernel(grid=lambda x: x.shape[0], warps=4)
def promised(x: MULTIPLE, y: ROWS) -> None:
    y[lg.block_id(), :] = x[lg.block_id(), :]


def floats(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


BROKEN = [
    (promised, (floats(2, 30), floats(2, 30)), r"'x'.* is 30, .* says that 16 divides it"),
    (
        promised,
        (floats(2, 80), floats(2, 80)),
        r"'x'.* is 80, which is above 64",
    ),
    (promised, (floats(2, 32), floats(2, 48)), r"'y'.*dimension 1 is 48, .* is N, which is 32"),
    (promised, (floats(2, 32), floats(3, 32)), r"'y'.*dimension 0 is 3"),
    (promised, (floats(2, 0), floats(2, 0)), r"'x'.*dimension 1 is 0"),
    (softmax, (floats(0, 9), floats(0, 9)), r"'x'.*dimension 0 is 0"),
    (promised, (floats(32), floats(32)), r"'x' has 2 dimensions"),
    (promised, (floats(32, 2).T, floats(2, 32)), r"'x'.*strides"),
    (copy, (floats(8, 64)[::-1], floats(8, 64)), r"'x'.*stride.*-64"),
    (copy, (floats(8, 64), floats(8, 64).T.copy().T), r"'y'.*stride"),
]


@pytest.mark.parametrize(("kernel", "arrays", "says"), BROKEN, ids=[b[2] for b in BROKEN])
def test_a_launch_that_breaks_a_promise(kernel: Any, arrays: Any, says: str) -> None:
    with pytest.raises(LegoError, match=says) as info:
        kernel(*arrays, device="sim")
    assert "\n" not in info.value.message


def test_an_artifact_of_a_class_refuses_other_sizes() -> None:
    artifact = softmax.compile(sizes={"M": 4, "N": 128})
    x = random((4, 100))
    with pytest.raises(LegoError, match=r"'x'.*dimension 1 is 100"):
        runtime.launch(artifact, x, x.copy(), device="sim")
    softmax(x, x.copy(), device="sim")  # another class


@pytest.mark.parametrize(
    ("kernel", "given"),
    [
        (softmax, [(3, 100)]),
        (softmax, [(2, 128)]),
        (transpose, [(40, 100)]),
        (column_sums, [(33, 50)]),
        (copy, [(20, 70), (20, 70)]),
    ],
)
def test_each_step_leaves_what_a_kernel_computes(kernel: Any, given: Any) -> None:
    arrays = [random(shape) for shape in given]
    lines = kernel.check_each_step(*arrays, orders=("random",))
    steps = [line.partition(":")[0] for line in lines]
    assert steps[: len(PLACING)] == [step.__name__ for step in PLACING]
    assert len(steps) == len(PLACING) + 1, "and the lowering"


def test_a_sequence_has_one_class_for_all_its_kernels() -> None:
    twice = lg.sequence(
        "quarters",
        [halved.on(y="half"), halved.on(x="half")],
        parameters={name: halved.parameters()["x"] for name in ("x", "half", "y")},
    )
    for n in (5, 300, 512):
        x = random((n,), np.float16)
        half, y = np.zeros_like(x), np.zeros_like(x)
        twice(x, half, y, device="sim")
        np.testing.assert_array_equal(y, x / 4)
    assert [str(each) for each in twice.classes()] == ["any sizes", "16 divides N"]
