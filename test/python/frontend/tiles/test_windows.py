"""Windows in kernels of threads and on tiles, against NumPy's padding."""

# ruff: noqa: F821 (Tensor["f32", ...] is no forward reference)

from itertools import product
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

N = 10
STAR = {
    (1, 1, 1): -6.0,
    (0, 1, 1): 1.0,
    (2, 1, 1): 2.0,
    (1, 0, 1): 3.0,
    (1, 2, 1): 4.0,
    (1, 1, 0): 5.0,
    (1, 1, 2): 7.0,
}
CUBE = {at: float(k - 13) for k, at in enumerate(product(range(3), repeat=3))}
STENCILS = {"star": STAR, "cube": CUBE}
NUMPY_MODES = {"zero": "constant", "clamp": "edge", "wrap": "wrap"}
LAYOUTS = {
    "rows": lg.OrderBy(lg.Row(N, N, N)),
    "bricks": lg.OrderBy(lg.GenP([N, N, N], lg.bricks(5, 2, 2))),
}
BOUNDARIES = pytest.mark.parametrize("boundary", NUMPY_MODES)
RNG = np.random.default_rng(7)


def neighbours(z: Any, y: Any, x: Any, i: Any, j: Any, k: Any) -> tuple[Any, Any, Any]:
    return z + i - 1, y + j - 1, x + k - 1


def reference(x: Any, taps: dict[tuple[int, ...], float], boundary: str) -> Any:
    padded = np.pad(x, 1, mode=NUMPY_MODES[boundary])
    y = np.zeros_like(x)
    for at, weight in taps.items():
        y += weight * padded[tuple(slice(a, a + N) for a in at)]
    return y


def by_threads(kind: Any, taps: dict[tuple[int, ...], float], boundary: str) -> Any:
    @lg.kernel(grid=(3, N, N), block=4)
    def stencil(x: kind, y: kind):
        near = x.window((N, N, N, 3, 3, 3), neighbours, boundary)
        columns = lg.OrderBy(lg.Row(N)).TileBy([3], [4])
        at = lg.block_id("z"), lg.block_id("y")
        column, lane = lg.block_id("x"), lg.thread_id("x")

        @lg.if_(columns.mask(column, lane))
        def inside():
            own = (*at, columns.apply(column, lane))
            y[own] = sum(weight * near[(*own, *tap)] for tap, weight in taps.items())

    return stencil


def by_tiles(kind: Any, taps: dict[tuple[int, ...], float], boundary: str) -> Any:
    @lg.kernel(grid=(2, 3, 2), warps=2)
    def stencil(x: kind, y: kind):
        near = x.window((3, 3, 3, N, N, N), lambda *at: neighbours(*at[3:], *at[:3]), boundary)
        near = near.tile(8, 4, 8)
        at = lg.block_id("z"), lg.block_id("y"), lg.block_id("x")
        y.tile(8, 4, 8)[at] = sum(weight * near[(*tap, *at)] for tap, weight in taps.items())

    return stencil


@BOUNDARIES
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("points", STENCILS)
@pytest.mark.parametrize("kernel", [by_threads, by_tiles])
def test_stencils(kernel: Any, points: str, layout: str, boundary: str) -> None:
    kind, taps = lg.Tensor["f32", LAYOUTS[layout]], STENCILS[points]
    x = RNG.integers(-9, 9, (N, N, N)).astype(np.float32)
    found = kernel(kind, taps, boundary).run(x, device="sim").outputs["y"]
    np.testing.assert_array_equal(found, reference(x, taps, boundary))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_step_of_a_stencil(layout: str) -> None:
    x = RNG.integers(-9, 9, (N, N, N)).astype(np.float32)
    by_tiles(lg.Tensor["f32", LAYOUTS[layout]], STAR, "zero").check_each_step(x)


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 1, 1), (1, 2, 2)])
def test_convolution_is_a_window_and_a_dot(stride: int, padding: int, dilation: int) -> None:
    images, size, channels, filters, taps = 2, (9, 7), 16, 32, 3
    reach = dilation * (taps - 1) + 1
    out = tuple((n + 2 * padding - reach) // stride + 1 for n in size)
    rows, columns = images * out[0] * out[1], taps * taps * channels

    def element(n: Any, y: Any, x: Any, i: Any, j: Any, c: Any) -> tuple[Any, ...]:
        return (
            n,
            stride * y + dilation * i - padding,
            stride * x + dilation * j - padding,
            c,
        )

    @lg.kernel(grid=lg.ceildiv(rows, 16), warps=2)
    def convolution(
        x: lg.Tensor["f16", (images, *size, channels)],
        w: lg.Tensor["f16", (columns, filters)],
        y: lg.Tensor["f32", (rows, filters)],
    ):
        near = x.window((images, *out, taps, taps, channels), element, "zero")
        matrix, m = near.reshape(rows, columns), lg.block_id()

        @lg.fold(columns // 16, lg.zeros((16, filters), "f32"))
        def total(k, total):
            return lg.dot(matrix.tile(16, 16)[m, k], w.tile(16, filters)[k, 0], total)

        y.tile(16, filters)[m, 0] = total

    x = RNG.integers(-3, 3, (images, *size, channels)).astype(np.float16)
    w = RNG.integers(-3, 3, (columns, filters)).astype(np.float16)
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    patches = np.empty((images, *out, taps, taps, channels), np.float32)
    for i, j in product(range(taps), repeat=2):
        ends = [k * dilation + stride * (n - 1) + 1 for k, n in zip((i, j), out, strict=True)]
        patches[:, :, :, i, j] = padded[
            :, i * dilation : ends[0] : stride, j * dilation : ends[1] : stride
        ]
    found = convolution.run(x, w, device="sim").outputs["y"]
    expected = patches.reshape(rows, columns) @ w.astype(np.float32)
    np.testing.assert_array_equal(found, expected)


def test_boundary_elements_are_valid_and_padding_is_not() -> None:
    """A maximum sees the zeros beside the tensor, but not what a tile is padded with."""

    @lg.kernel(grid=2, warps=1)
    def most(x: lg.Tensor["f32", (10,)], y: lg.Tensor["f32", (2,)], z: lg.Tensor["f32", (2,)]):
        left, b = x.window((10,), lambda k: k - 1, "zero").tile(8), lg.block_id()
        y[b] = lg.max(left[b])
        z[b] = lg.min(-x.window((10,), lambda k: 9 - k).tile(8)[b])

    x = -RNG.random(10, np.float32) - 1
    outputs = most.run(x, device="sim").outputs
    np.testing.assert_array_equal(outputs["y"], [0, x[7:9].max()])
    np.testing.assert_array_equal(outputs["z"], [(-x[2:]).min(), (-x[:2]).min()])
    most.check_each_step(x)


def test_elements_and_gathers_through_a_window() -> None:
    @lg.kernel(grid=1, warps=1)
    def gathered(
        x: lg.Tensor["f32", (8,)],
        at: lg.Tensor["i32", (32,)],
        y: lg.Tensor["f32", (32,)],
        z: lg.Tensor["f32", (3,)],
    ):
        near = x.window((10,), lambda k: k - 1, "zero")
        y[:] = near[at[:]]
        for k, index in enumerate((0, 5, 9)):
            z[k] = near[index]

    x = np.arange(1, 9, dtype=np.float32)
    at = RNG.integers(0, 10, 32).astype(np.int32)
    outputs = gathered.run(x, at, device="sim").outputs
    padded = np.pad(x, 1)
    np.testing.assert_array_equal(outputs["y"], padded[at])
    np.testing.assert_array_equal(outputs["z"], padded[[0, 5, 9]])
    gathered.check_each_step(x, at)


@pytest.mark.parametrize("threads", [{"block": 8}, {"warps": 1}])
def test_stores_through_a_window_that_repeats_nothing(threads: dict[str, int]) -> None:
    """The inner elements of a tensor, and a tensor from behind."""

    @lg.kernel(grid=1, **threads)
    def inner(x: lg.Tensor["f32", (8,)], y: lg.Tensor["f32", (10,)]):
        to = y.window((8,), lambda k: 8 - k)
        if "warps" in threads:
            to[:] = x[:]
        else:
            to[lg.thread_id()] = x[lg.thread_id()]

    x, y = np.arange(8, dtype=np.float32), np.full(10, -1, np.float32)
    inner(x, y, device="sim")
    np.testing.assert_array_equal(y, [-1, *x[::-1], -1])


@pytest.mark.parametrize("threads", [{"block": 8}, {"warps": 1}])
def test_a_window_that_repeats_elements_is_not_stored_through(threads: dict[str, int]) -> None:
    def build(store: Any) -> Any:
        @lg.kernel(grid=1, **threads)
        def kernel(x: lg.Tensor["f32", (8,)]):
            store(x.window((8, 3), lambda k, i: k + i - 1, "zero"))

        return kernel

    stores = [
        lambda w: w.__setitem__((0, 0), 1.0),
        lambda w: lg.atomic_add(w, (0, 0), 1.0),
    ]
    if "warps" in threads:
        stores += [
            lambda w: w.__setitem__((slice(None), 0), 1.0),
            lambda w: w.tile(4, 2).__setitem__((0, 0), 1.0),
            lambda w: w.__setitem__((lg.arange(8), 1), 1.0),
        ]
    for store in stores:
        with pytest.raises(LegoError, match=r"'x' is stored through a window: .*same element") as e:
            build(store).compile()
        assert e.value.location is not None
        assert e.value.location.file.endswith("test_windows.py")
        assert "for loads" in (e.value.hint or "")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda x: x.window((8,), lambda k: k + 1), "'x': .*say|not proven"),
        (lambda x: x.window((8,), lambda k: k * k, "zero"), "'x': .*not affine"),
        (lambda x: x.reshape(3, 3), "'x': .*9"),
        (lambda x: x.window((8,), lambda k: k, "reflect"), "'x': .*no boundary"),
        (lambda x: x.window((lg.thread_id() + 1,)), "'x': a size of the window is computed"),
    ],
)
def test_errors_name_the_tensor_and_the_line(make: Any, says: str) -> None:
    @lg.kernel(grid=1, block=8)
    def kernel(x: lg.Tensor["f32", (8,)]):
        make(x)

    with pytest.raises(LegoError, match=says) as e:
        kernel.compile()
    assert e.value.location is not None
    assert e.value.location.file.endswith("test_windows.py")


@pytest.mark.parametrize(
    ("layout", "excess"),
    [(lg.OrderBy(lg.Row(32, 33)).Window([32, 32]), 0), (lg.OrderBy(lg.Row(32, 32)), 4 * 32 * 31)],
)
def test_padded_rows_of_shared_memory_have_no_bank_conflicts(layout: Any, excess: int) -> None:
    """The transpose of 64x64: columns of 32 rows lie in one bank, of padded rows in all of them."""
    tiles = lg.OrderBy(lg.Row(64, 64)).TileBy([2, 2], [32, 32])
    kind = lg.Tensor["f32", tiles]

    @lg.kernel(grid=4, block=(32, 32))
    def transpose(a: kind, b: kind):
        m, n = lg.OrderBy(lg.Row(2, 2)).inv(lg.block_id())
        i, j = lg.thread_id("y"), lg.thread_id("x")
        tile = lg.shared("f32", layout)
        tile[i, j] = a[m, n, i, j]
        lg.barrier()
        b[n, m, i, j] = tile[j, i]

    x = RNG.random((64, 64), np.float32)
    result = transpose.run(x, device="sim", costs=True)
    np.testing.assert_array_equal(result.outputs["b"], x.T)
    assert result.costs[0].excess_wavefronts == excess
    assert f"[{4 * layout.size}]" in transpose.compilation().text("ptx")


def test_updates_of_padded_rows_are_each_thread_s_own() -> None:
    @lg.kernel(grid=1, block=32)
    def doubled(x: lg.Tensor["f32", (4, 8)]):
        i, j = lg.OrderBy(lg.Row(4, 8)).inv(lg.thread_id())
        tile = lg.shared("f32", lg.OrderBy(lg.Row(4, 9)).Window([4, 8]))
        tile[i, j] = x[i, j]
        tile[i, j] += x[i, j]
        x[i, j] = tile[i, j]

    x = RNG.random((4, 8), np.float32)
    y = x.copy()
    doubled(y, device="sim")
    np.testing.assert_array_equal(y, 2 * x)


@BOUNDARIES
def test_tensors_of_run_time_sizes(boundary: str) -> None:
    kind = lg.Tensor["f32", "M, N"]

    @lg.kernel(grid=lambda x: (lg.ceildiv(x.shape[1], 32), x.shape[0]), block=32)
    def by_threads(x: kind, y: kind):
        m, n = x.dims
        near = x.window((m, n, 3, 3), lambda r, c, i, j: (r + i - 1, c + j - 1), boundary)
        row, column = lg.block_id("y"), lg.block_id("x") * 32 + lg.thread_id()

        @lg.if_(column < x.shape[1])
        def inside():
            y[row, column] = sum(near[row, column, i, j] for i in range(3) for j in range(3))

    @lg.kernel(
        grid=lambda x: (lg.ceildiv(x.shape[1], 32), lg.ceildiv(x.shape[0], 8)),
        warps=2,
    )
    def by_tiles(x: kind, y: kind):
        m, n = x.shape
        near = x.window((3, 3, m, n), lambda i, j, r, c: (r + i - 1, c + j - 1), boundary)
        at = lg.block_id("y"), lg.block_id("x")
        taps = product(range(3), repeat=2)
        y.tile(8, 32)[at] = sum(near.tile(8, 32)[(*tap, *at)] for tap in taps)

    for shape in ((5, 7), (8, 64), (3, 100), (16, 64)):
        x = RNG.integers(-9, 9, shape).astype(np.float32)
        padded = np.pad(x, 1, mode=NUMPY_MODES[boundary])
        parts = [padded[i : i + shape[0], j : j + shape[1]] for i, j in np.ndindex(3, 3)]
        for kernel in (by_threads, by_tiles):
            y = np.empty_like(x)
            kernel(x, y, device="sim")
            np.testing.assert_array_equal(y, sum(parts))
