"""Kernels on tiles that the CTAs of a cluster hold together: right in all orders, and no races."""

import dataclasses
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import runtime
from lego_mlir.analysis.distributed import coalesced

ORDERS = ("late", "early", "random:1")
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "i32": np.int32}


F_2 = lg.Tensor["f32", (2,)]
F_256 = lg.Tensor["f32", (256,)]
F_2x1024 = lg.Tensor["f32", (2, 1024)]
F_2x4096 = lg.Tensor["f32", (2, 4096)]
F_2x512 = lg.Tensor["f32", (2, 512)]
F_64x64 = lg.Tensor["f32", (64, 64)]
F_6x512 = lg.Tensor["f32", (6, 512)]
F_8 = lg.Tensor["f32", (8,)]
F_8x256 = lg.Tensor["f32", (8, 256)]
INDEX = lg.Scalar["index"]
I_1 = lg.Tensor["i32", (1,)]
I_256 = lg.Tensor["i32", (256,)]
I_2x3000 = lg.Tensor["i32", (2, 3000)]
I_3x512 = lg.Tensor["i32", (3, 512)]


def run(kernel: lg.Kernel, *arrays: Any) -> list[Any]:
    """Launch in all orders, which must leave the same bits, and return what the arrays become."""
    artifact = kernel.compile(check=True)
    found = []
    for order in ORDERS:
        copies = [np.copy(a) for a in arrays]
        runtime.launch(artifact, *copies, device=runtime.select("sim", order=order))
        found.append(copies)
    for copies in found[1:]:
        for one, other in zip(found[0], copies, strict=True):
            np.testing.assert_array_equal(one, other)
    return found[0]


def ptx(kernel: lg.Kernel) -> str:
    text: str = kernel.compilation().text("ptx")
    return text


def waits_of_cluster(kernel: lg.Kernel) -> int:
    """Return how many waits at the cluster's barrier a kernel has, before loops are unrolled."""
    text: str = kernel.compilation().text("index")
    return text.count("nvvm.cluster.wait")


def softmax(rows: int, columns: int, dtype: str, warps: int, cluster: int) -> lg.Kernel:
    kind = lg.Tensor[dtype, (rows, columns)]

    @lg.kernel(grid=rows, warps=warps, cluster=cluster)
    def kernel(x: kind, y: kind):  # type: ignore[valid-type]
        row = x[lg.block_id(), :].to("f32")
        e = lg.exp(row - lg.max(row))
        y[lg.block_id(), :] = (e / lg.sum(e)).to(dtype)

    return kernel


def rmsnorm(rows: int, columns: int, dtype: str, warps: int, cluster: int) -> lg.Kernel:
    kind, weights = lg.Tensor[dtype, (rows, columns)], lg.Tensor[dtype, (columns,)]

    @lg.kernel(grid=rows, warps=warps, cluster=cluster)
    def kernel(x: kind, w: weights, y: kind):  # type: ignore[valid-type]
        row = x[lg.block_id(), :].to("f32")
        scale = lg.rsqrt(lg.sum(row * row) / columns + 1e-6)
        y[lg.block_id(), :] = (row * scale * w[:].to("f32")).to(dtype)

    return kernel


def random(dtype: str, *shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(DTYPES[dtype])


def softmax_of(x: Any) -> Any:
    e = np.exp(x.astype(np.float64) - x.astype(np.float64).max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def tolerance(dtype: str) -> float:
    return {"f32": 3e-6, "f16": 2e-3, "bf16": 1e-2}[dtype]


@pytest.mark.parametrize("cluster", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("columns", [1024, 1000, 37])
def test_a_row_is_divided_among_the_ctas(columns: int, cluster: int) -> None:
    x = random("f32", 2, columns)
    _, y = run(softmax(2, columns, "f32", 2, cluster), x, np.empty_like(x))
    np.testing.assert_allclose(y, softmax_of(x), rtol=3e-6)


def test_any_number_of_rows() -> None:
    """The grid counts clusters of a number of rows that the launch knows."""
    kind = lg.Tensor["f32", "M, 1000"]

    @lg.kernel(grid=lambda x: x.shape[0], warps=2, cluster=4)
    def shifted(x: kind, y: kind):  # type: ignore[valid-type]
        row = x[lg.block_id(), :]
        y[lg.block_id(), :] = row - lg.max(row)

    for rows in (1, 3):
        x = random("f32", rows, 1000)
        y = np.empty_like(x)
        shifted(x, y, device="sim")
        np.testing.assert_array_equal(y, x - x.max(axis=1, keepdims=True))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_short_floats(dtype: str) -> None:
    x, w = random(dtype, 2, 2048), random(dtype, 2048)
    *_, y = run(rmsnorm(2, 2048, dtype, 4, 4), x, w, np.empty_like(x))
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6) * w.astype(np.float64)
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=tolerance(dtype), atol=1e-6)


ROWS = [
    pytest.param(columns, dtype, warps, cluster, id=f"{columns}-{dtype}")
    for columns, cluster in ((65_536, 4), (131_072, 8), (262_144, 16))
    for dtype, warps in (("f32", 8), ("bf16", 8))
]


@pytest.mark.parametrize(("columns", "dtype", "warps", "cluster"), ROWS)
def test_long_rows(columns: int, dtype: str, warps: int, cluster: int) -> None:
    x, w = random(dtype, 1, columns), random(dtype, columns)
    kernel = softmax(1, columns, dtype, warps, cluster)
    _, y = run(kernel, x, np.empty_like(x))
    np.testing.assert_allclose(y.astype(np.float64), softmax_of(x), rtol=tolerance(dtype))
    assert ".local" not in ptx(kernel)
    *_, y = run(rmsnorm(1, columns, dtype, warps, cluster), x, w, np.empty_like(x))
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6) * w.astype(np.float64)
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=tolerance(dtype))


def test_independent_reductions_take_one_round_trip() -> None:
    """The sends of the second statistic come before the wait for the first."""

    @lg.kernel(grid=2, warps=2, cluster=4)
    def layernorm(x: F_2x4096, y: F_2x4096):
        row = x[lg.block_id(), :]
        mean = lg.sum(row) / 4096.0
        square = lg.sum(row * row) / 4096.0
        y[lg.block_id(), :] = (row - mean) * lg.rsqrt(square - mean * mean + 1e-5)

    x = random("f32", 2, 4096)
    _, y = run(layernorm, x, np.empty_like(x))
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    lines = [
        line for line in ptx(layernorm).splitlines() if "st.async" in line or "try_wait" in line
    ]
    assert ["st.async" in line for line in lines] == [True, True, False, False]


def test_tiles_reduced_by_one_function_share_a_barrier() -> None:
    @lg.kernel(grid=2, warps=2, cluster=2)
    def online(x: F_2x1024, y: F_2):
        row = x[lg.block_id(), :]

        def both(a: Any, b: Any) -> Any:
            high = lg.maximum(a[0], b[0])
            return high, a[1] * lg.exp(a[0] - high) + b[1] * lg.exp(b[0] - high)

        high, total = lg.reduce(both, (row, lg.full((1024,), 1.0, "f32")), identity=(-1e30, 0.0))
        y[lg.block_id()] = high + lg.log(total)

    x = random("f32", 2, 1024)
    _, y = run(online, x, np.empty(2, np.float32))
    np.testing.assert_allclose(y, np.log(np.exp(x.astype(np.float64)).sum(1)), rtol=1e-5)
    assert ptx(online).count("mbarrier.init") == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_go_on_from_cta_to_cta(reverse: bool) -> None:
    @lg.kernel(grid=2, warps=2, cluster=4)
    def cumulated(x: I_2x3000, y: I_2x3000):
        y[lg.block_id(), :] = lg.cumsum(x[lg.block_id(), :], 0, reverse=reverse)

    x = np.random.default_rng(1).integers(-9, 9, (2, 3000)).astype(np.int32)
    _, y = run(cumulated, x, np.empty_like(x))
    step = -1 if reverse else 1
    np.testing.assert_array_equal(y, x[:, ::step].cumsum(axis=1)[:, ::step])


def test_both_dimensions() -> None:
    """Rows of a tile are in different CTAs; along columns CTAs gather."""

    @lg.kernel(grid=1, warps=2, cluster=4)
    def sums(
        x: F_8x256,
        rows: F_8,
        columns: F_256,
        at: I_256,
    ):
        t = x[:, :]
        rows[:] = lg.sum(t, axis=1)
        columns[:] = lg.sum(t, axis=0)
        at[:] = lg.argmax(t, axis=0)

    x = random("f32", 8, 256)
    _, rows, columns, at = run(
        sums, x, np.empty(8, np.float32), np.empty(256, np.float32), np.empty(256, np.int32)
    )
    np.testing.assert_allclose(rows, x.sum(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(columns, x.sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(at, x.argmax(0))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bool"])
def test_exchanges_in_loops(dtype: str) -> None:
    """Exchanges alternate between two buffers: CTAs do not wait for one another in between."""
    kind = F_6x512

    @lg.kernel(grid=2, warps=2, cluster=2)
    def normalized(x: kind, y: kind):  # type: ignore[valid-type]
        for k in lg.loop(3):
            i = lg.block_id() * 3 + k
            row = x[i, :]
            if dtype == "bool":
                y[i, :] = lg.where(lg.any(row > 3.0), row, -row)
            else:
                y[i, :] = row - lg.max(row.to(dtype)).to("f32")

    x = random("f32", 6, 512)
    _, y = run(normalized, x, np.empty_like(x))
    if dtype == "bool":
        expected = np.where((x > 3).any(1, keepdims=True), x, -x)
    else:
        high = x.astype(DTYPES[dtype]).max(1, keepdims=True).astype(np.float32)
        expected = x - high
    np.testing.assert_array_equal(y, expected)
    assert waits_of_cluster(normalized) == 1
    assert ".local" not in ptx(normalized)


def test_the_simulator_sees_a_missing_arrival() -> None:
    """Unless those who send arrive, too, nobody knows that they have read what came before."""

    @lg.kernel(grid=1, warps=1, cluster=4)
    def steps(x: F_2x512, n: INDEX, y: F_2x512):
        @lg.fold(n, x[0, :])
        def row(k: Any, row: Any) -> Any:
            return row - lg.max(row)

        y[0, :] = row

    x = random("f32", 2, 512)
    artifact = steps.compile()
    wrong = re.sub(r"mbarrier\.arrive\.shared::cluster\S+ _, \S+;", "", artifact.ptx)
    assert wrong != artifact.ptx
    runtime.launch(artifact, x, 3, np.empty_like(x), device=runtime.select("sim"))
    broken = dataclasses.replace(artifact, ptx=wrong, cubin=None)
    with pytest.raises(lg.LegoError, match="deadlock"):
        runtime.launch(broken, x, 3, np.empty_like(x), device=runtime.select("sim"))


def test_conditions_and_loops_until() -> None:
    """All CTAs of a cluster take the same branches, which depend on what they gathered."""

    @lg.kernel(grid=2, warps=2, cluster=2)
    def halved(x: F_2x512, y: F_2x512):
        @lg.while_(lambda t: lg.sum(t * t) > 1.0, x[lg.block_id(), :])
        def small(t: Any) -> Any:
            return t / 2.0

        y[lg.block_id(), :] = small

    x = random("f32", 2, 512)
    _, y = run(halved, x, np.empty_like(x))
    expected = x.copy()
    for row in expected:
        while (row.astype(np.float64) ** 2).sum() > 1:
            row /= 2
    np.testing.assert_array_equal(y, expected)


def test_memory_that_other_ctas_wrote() -> None:
    """What one CTA stores and another loads has a barrier of the cluster between."""

    @lg.kernel(grid=2, warps=2, cluster=2, in_place=True)
    def turned(x: F_2x512, y: F_2x512):
        i = lg.block_id()
        y[i, :] = x[i, :] * 2.0
        y[i, :] = y[i, 511 - lg.arange(512)] + 1.0

    x = random("f32", 2, 512)
    _, y = run(turned, x, np.empty_like(x))
    np.testing.assert_array_equal(y, x[:, ::-1] * 2 + 1)
    assert "barrier.cluster.wait" in ptx(turned)


def test_one_thread_of_the_cluster_updates_an_element() -> None:
    @lg.kernel(grid=3, warps=1, cluster=4)
    def count(x: I_3x512, total: I_1):
        lg.atomic_add(total, 0, lg.sum(x[lg.block_id(), :]))

    x = np.random.default_rng(1).integers(0, 9, (3, 512)).astype(np.int32)
    _, total = run(count, x, np.zeros(1, np.int32))
    assert total[0] == x.sum()


def test_each_step_keeps_the_meaning() -> None:
    x = random("f32", 2, 1000)
    softmax(2, 1000, "f32", 2, 4).check_each_step(x, np.empty_like(x))


def test_a_kernel_of_one_cta_has_no_barriers_of_clusters() -> None:
    text = ptx(softmax(2, 1000, "f32", 2, 1))
    assert "barrier.cluster" not in text
    assert "mbarrier" not in text


@pytest.mark.parametrize("cluster", [0, 17, True, 2.0, "2"])
def test_no_number_of_ctas(cluster: Any) -> None:
    with pytest.raises(lg.LegoError, match="cluster is a number of CTAs from 1 to 16"):
        softmax(1, 64, "f32", 1, cluster)


def test_clusters_are_for_tiles() -> None:
    with pytest.raises(lg.LegoError, match="no tiles") as caught:
        lg.kernel(grid=1, block=32, cluster=2)(lambda: None)
    assert "warps=4" in caught.value.hint


def test_a_target_without_clusters() -> None:
    with pytest.raises(lg.LegoError, match="sm_80 has no clusters"):
        softmax(1, 1024, "f32", 2, 2).compile(target="sm_80")


def test_parts_that_ctas_would_exchange() -> None:
    """A conversion that no gather does is an error at its line."""
    by_rows, by_columns = (
        coalesced((64, 64), 4, 1, ctas=2, order=order) for order in ((0, 1), (1, 0))
    )

    @lg.kernel(grid=1, warps=1, cluster=2)
    def turned(x: F_64x64, y: F_64x64):
        y[:, :] = lg.convert(lg.convert(x[:, :], by_rows) * 2.0, by_columns)

    with pytest.raises(lg.LegoError, match="exchanged between the CTAs") as caught:
        ptx(turned)
    assert caught.value.location is not None
    assert caught.value.hint


def test_a_layout_of_other_ctas() -> None:
    layout = coalesced((64, 64), 4, 1)

    @lg.kernel(grid=1, warps=1, cluster=2)
    def converted(x: F_64x64):
        x[:, :] = lg.convert(x[:, :], layout)

    with pytest.raises(lg.LegoError, match=r"1 warps in 1 CTAs.*1 warps in 2 CTAs"):
        ptx(converted)


def test_a_tile_that_all_ctas_hold_is_split() -> None:
    """A tile that was gathered along one dimension is divided again along another."""

    @lg.kernel(grid=1, warps=2, cluster=2)
    def scaled(x: F_8x256, y: F_256):
        high = lg.max(x[:, :], axis=0)
        y[:] = lg.exp(lg.convert(high, coalesced((256,), 4, 2, ctas=2)))

    x = random("f32", 8, 256)
    _, y = run(scaled, x, np.empty(256, np.float32))
    np.testing.assert_allclose(y, np.exp(x.max(0)), rtol=1e-6)
