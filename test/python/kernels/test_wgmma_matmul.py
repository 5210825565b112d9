"""GEMMs by TMA and wgmma in the simulator: layouts, types, sizes, configs, and errors."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import Col, OrderBy, RegP, Row, runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

SMALL = WgmmaConfig((64, 32, 64), 1, 2)


def check(kernel: lg.Kernel) -> None:
    """Check that a kernel of the schedule `persistent` computes what NumPy does."""
    assert kernel.schedule == "persistent"
    comparison = kernel.run(device="sim").comparison
    assert comparison is not None
    assert comparison.equal, str(comparison)


def check_orders(kernel: lg.Kernel) -> None:
    """Check, in three orders of the simulator, that a kernel computes what NumPy does."""
    artifact = kernel.compilation().artifact(assemble=False)
    for order in ("late", "early", "random:1"):
        comparison = runtime.run(artifact, [], runtime.select("sim", order=order)).comparison
        assert comparison is not None
        assert comparison.equal, f"{order}: {comparison}"


@pytest.mark.parametrize("c", [Row, Col])
@pytest.mark.parametrize("b", [Row, Col])
@pytest.mark.parametrize("a", [Row, Col])
def test_partial_tiles_in_every_order(a: Any, b: Any, c: Any) -> None:
    m, n, k = 104, 72, 136
    orders = {"a": OrderBy(a(m, k)), "b": OrderBy(b(k, n)), "c": OrderBy(c(m, n))}
    check(matmul(m, n, k, **orders, config=SMALL))


@pytest.mark.parametrize("c", [Row, Col])
@pytest.mark.parametrize("a", [Row, Col])
def test_swapped_operands(a: Any, c: Any) -> None:
    """C of 16 rows is computed as 16 columns and stored transposed."""
    m, n, k = 16, 192, 64
    config = WgmmaConfig((64, 16, 64), 1, 2, swap_ab=c is Row)
    orders = {"a": OrderBy(a(m, k)), "c": OrderBy(c(m, n))}
    kernel = matmul(m, n, k, **orders, config=config)
    assert kernel.grid == (3, 1, 1)
    check(kernel)


@pytest.mark.parametrize(
    ("dtype", "out"), [("f16", "f32"), ("f16", "bf16"), ("bf16", None), ("bf16", "f32")]
)
def test_wgmma_gemms_of_every_type_are_correct(dtype: str, out: str | None) -> None:
    check(matmul(72, 80, 64, dtype, out=out, config=SMALL))


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "f8E5M2", "i8"])
def test_8_bit_elements_along_k(dtype: str) -> None:
    m, n, k = 64, 48, 144
    config = WgmmaConfig((64, 16, 128), 1, 2)
    check(matmul(m, n, k, dtype, b=OrderBy(Col(k, n)), config=config))


@pytest.mark.parametrize(
    ("m", "n", "config"),
    [
        (256, 256, WgmmaConfig((64, 128, 64), 1, 3, cluster=(1, 2))),
        (256, 256, WgmmaConfig((128, 64, 64), 2, 2, cluster=(2, 1), raster_group=1)),
        (256, 192, WgmmaConfig((128, 64, 32), 1, 3, persistent_ctas=2)),
        (256, 200, WgmmaConfig((128, 96, 64), 2, 2, persistent_ctas=4, cluster=(2, 1))),
        (384, 256, WgmmaConfig((128, 128, 64), 2, 2, persistent_ctas=4, overlap_epilogue=True)),
        (
            256,
            384,
            WgmmaConfig(
                (128, 192, 64), 2, 2, persistent_ctas=2, overlap_epilogue=True, cluster=(1, 2)
            ),
        ),
        (192, 64, WgmmaConfig((192, 64, 64), 3, 2, one_cta_per_sm=True)),
        (64, 512, WgmmaConfig((64, 256, 64), 1, 2, split_k=2)),
        (256, 256, WgmmaConfig((128, 128, 32), 1, 3, persistent_ctas=2)),
        (64, 128, WgmmaConfig((64, 64, 64), 1, 2, split_k=2)),
        (200, 72, WgmmaConfig((192, 24, 64), 1, 2)),
        (64, 48, WgmmaConfig((64, 8, 64), 1, 2)),
        (128, 208, WgmmaConfig((128, 208, 64), 1, 2)),
        (256, 136, WgmmaConfig((256, 136, 32), 2, 2, persistent_ctas=1)),
        (384, 104, WgmmaConfig((192, 104, 64), 3, 2, persistent_ctas=1, overlap_epilogue=True)),
        (64, 144, WgmmaConfig((64, 48, 64), 1, 2, split_k=2)),
        (128, 16, WgmmaConfig((128, 16, 64), 1, 12, split_k=2)),
        (128, 32, WgmmaConfig((64, 32, 64), 1, 16, split_k=4)),
    ],
    ids=str,
)
def test_every_wgmma_config_is_correct(m: int, n: int, config: WgmmaConfig) -> None:
    k = 192 * config.split_k
    check(matmul(m, n, k, b=OrderBy(Col(k, n)), config=config))


@pytest.mark.parametrize("rows", [1, 7, 16])
@pytest.mark.parametrize("b", [Row, Col])
def test_few_rows_by_slices_of_k_in_a_cluster(rows: int, b: Any) -> None:
    """Each CTA of the cluster stores the eight columns of C' that a wgmma has at least."""
    config = WgmmaConfig((128, 16, 64), 1, 8, split_k=2, swap_ab=True)
    check(matmul(rows, 264, 328, b=OrderBy(b(328, 264)), config=config))


@pytest.mark.parametrize("n", [176, 208, 240, 152, 8])
def test_swapped_tiles_of_any_width(n: int) -> None:
    config = WgmmaConfig((64, n, 64), 1, 2, swap_ab=True)
    check(matmul(n, 72, 64, b=OrderBy(Col(64, 72)), config=config))


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "i8"])
@pytest.mark.parametrize("out", ["f16", "f32"])
def test_8_bit_elements_in_narrow_tiles(dtype: str, out: str) -> None:
    config = WgmmaConfig((64, 24, 128), 1, 2)
    check(matmul(72, 48, 144, dtype, out=out, b=OrderBy(Col(144, 48)), config=config))


def test_rows_of_b_in_tiles_of_odd_widths() -> None:
    config = WgmmaConfig((64, 24, 64), 1, 2)
    with pytest.raises(LegoError, match=r"24 columns of B, contiguous in memory, are no multiple"):
        matmul(64, 48, 64, config=config)


CLUSTERS = [
    ((2, 1), 0, False),
    ((2, 2), 0, False),
    ((2, 2), 4, False),
    ((1, 4), 4, True),
    ((4, 1), 0, False),
    ((8, 1), 8, False),
    ((2, 4), 8, True),
]


@pytest.mark.parametrize(
    ("cluster", "persistent_ctas", "overlap_epilogue"), CLUSTERS, ids=lambda x: str(x)
)
def test_clusters_that_do_not_divide_the_tiles(
    cluster: tuple[int, int], persistent_ctas: int, overlap_epilogue: bool
) -> None:
    """Of 3×3 tiles, those at the edges partial."""
    config = WgmmaConfig(
        (64, 32, 64),
        1,
        2,
        cluster=cluster,
        persistent_ctas=persistent_ctas,
        overlap_epilogue=overlap_epilogue,
    )
    kernel = matmul(168, 88, 136, config=config, batch=2 if cluster == (2, 2) else None)
    check_orders(kernel)


PING_PONG = [
    ((168, 80, 200), WgmmaConfig((64, 32, 64), 2, 3, persistent_ctas=2, ping_pong=True)),
    # A CTA whose second consumer has no tile; a K loop of one iteration.
    ((168, 80, 40), WgmmaConfig((64, 32, 64), 2, 3, persistent_ctas=8, ping_pong=True)),
    (
        (168, 80, 136),
        WgmmaConfig((64, 32, 64), 2, 2, persistent_ctas=4, cluster=(2, 2), ping_pong=True),
    ),
    (
        (328, 136, 136),
        WgmmaConfig((128, 64, 64), 2, 4, persistent_ctas=2, swap_ab=True, ping_pong=True),
    ),
    (
        (168, 80, 328),
        WgmmaConfig((64, 32, 64), 2, 3, persistent_ctas=2, promote=2, ping_pong=True),
    ),
]


@pytest.mark.parametrize(("sizes", "config"), PING_PONG, ids=str)
def test_consumers_that_compute_tiles_in_turns(
    sizes: tuple[int, int, int], config: WgmmaConfig
) -> None:
    kernel = matmul(*sizes, config=config, batch=2 if config.cluster == (2, 2) else None)
    check_orders(kernel)


@pytest.mark.parametrize("swap_ab", [False, True])
def test_an_epilogue_with_operands_in_clusters_that_do_not_divide_the_tiles(swap_ab: bool) -> None:
    m, n, k = 72, 96, 64
    rng = np.random.default_rng(4)
    a, b, old = (rng.integers(-3, 4, shape).astype("f2") for shape in ((m, k), (k, n), (m, n)))
    bias, rows = (rng.integers(-9, 10, size).astype("f4") for size in (n, (m, 1)))
    config = WgmmaConfig((64, 32, 64), 1, 2, cluster=(2, 2), swap_ab=swap_ab)
    kernel = matmul(
        m,
        n,
        k,
        epilogue=lambda x, bias, rows, old: x + bias + rows + old.to("f32"),
        operands={
            "bias": lg.Tensor["f32", OrderBy(Row(n))],
            "rows": lg.Tensor["f32", OrderBy(Row(m, 1))],
            "old": lg.Tensor["f16", OrderBy(Row(m, n))],
        },
        config=config,
    )
    c = np.full((m, n), np.nan, "f2")
    kernel(a, b, c, bias, rows, old, device="sim")
    np.testing.assert_array_equal(c, a.astype("f4") @ b.astype("f4") + bias + rows + old)


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize(
    ("down", "across", "config"),
    [
        (7, 5, WgmmaConfig((64, 16, 64), 1, 2, raster_group=4)),
        (5, 7, WgmmaConfig((64, 16, 64), 1, 2, raster_group=4, persistent_ctas=5)),
        (13, 2, WgmmaConfig((64, 16, 64), 1, 2, raster_group=8, cluster=(2, 1))),
        (11, 13, WgmmaConfig((64, 8, 64), 1, 2, raster_group=8, cluster=(1, 2))),
    ],
)
def test_raster_groups_of_unequal_size(
    down: int, across: int, config: WgmmaConfig, batch: int | None
) -> None:
    problem = Problem(64 * down, config.tile[1] * across, 64, "f16", "f16", b="col")
    columns = OrderBy(RegP([2, 64, problem.n], [0, 2, 1]))
    order = OrderBy(Col(64, problem.n)) if batch is None else columns
    kernel = matmul(problem.m, problem.n, problem.k, b=order, config=config, batch=batch)
    assert "row_groups" in str(config.rasterization(problem))
    check(kernel)


@pytest.mark.parametrize(("k", "split_k"), [(320, 2), (200, 2), (456, 4)])
def test_split_k_that_does_not_divide_the_iterations(k: int, split_k: int) -> None:
    config = WgmmaConfig((64, 128, 64), 1, 2, split_k=split_k)
    check_orders(matmul(72, 128, k, config=config))


def test_split_k_that_does_not_divide_the_iterations_of_a_batch() -> None:
    config = WgmmaConfig((64, 64, 64), 1, 2, split_k=2)
    check(matmul(64, 64, 168, batch=2, a=OrderBy(RegP([2, 64, 168], [0, 2, 1])), config=config))


@pytest.mark.parametrize(
    ("dtype", "k", "config"),
    [
        ("f8E4M3FN", 912, WgmmaConfig((64, 96, 128), 1, 2, split_k=3, promote=1)),
        ("i8", 512, WgmmaConfig((64, 64, 128), 1, 2, split_k=2)),
        ("bf16", 300, WgmmaConfig((64, 80, 64), 1, 2, split_k=5)),  # of one iteration each
    ],
    ids=["f8", "i8", "bf16"],
)
def test_split_k_of_any_elements_and_any_number(dtype: str, k: int, config: WgmmaConfig) -> None:
    check_orders(matmul(64, 72, k, dtype, b=OrderBy(Col(k, 72)), config=config))


def test_the_epilogue_of_split_k_computes_with_its_columns() -> None:
    """Each CTA loads the columns of the operands that belong to its slice."""
    m, n, k = 64, 120, 160
    kernel = matmul(
        m,
        n,
        k,
        config=WgmmaConfig((64, 64, 64), 1, 2, split_k=2),
        epilogue=lambda x, bias, more: lg.relu(x + bias.to("f32")) + more.to("f32"),
        operands={"bias": lg.Tensor["f16", (n,)], "more": lg.Tensor["f16", (m, n)]},
    )
    random = np.random.default_rng(0)
    shapes = (m, k), (k, n), (m, n), (n,), (m, n)
    a, b, c, bias, more = (random.standard_normal(s).astype(np.float16) for s in shapes)
    kernel(a, b, c, bias, more, device="sim")
    wide = [x.astype(np.float32) for x in (a, b, bias, more)]
    expected = np.maximum(wide[0] @ wide[1] + wide[2], 0) + wide[3]
    np.testing.assert_allclose(c.astype(np.float32), expected, atol=5e-2)


def test_copies_may_arrive_at_any_time() -> None:
    config = WgmmaConfig(
        (128, 128, 64), 2, 2, persistent_ctas=2, overlap_epilogue=True, cluster=(2, 1)
    )
    check_orders(matmul(256, 256, 128, config=config))


@pytest.mark.parametrize(("asked", "found"), [(0, [128, 128]), (64, [64, 64]), (256, [256, 256])])
def test_l2_promotion(asked: int, found: list[int]) -> None:
    """Copies of A and B bring in a line, unless the config says."""
    config = replace(SMALL, l2_promotion=asked)
    kernel = matmul(64, 128, 72, config=config)
    (launch,) = kernel.compilation().artifact(assemble=False).launches
    maps = [p for p in launch.parameters if not isinstance(p, int)]
    promotions = {p.argument: p.l2_promotion for p in maps}
    assert [promotions[n] for n in range(2)] == found


def test_batched_gemms_by_wgmma_are_correct() -> None:
    check(matmul(80, 48, 64, batch=3, config=SMALL))
    columns = OrderBy(RegP([2, 80, 48], [0, 2, 1]))
    check(matmul(80, 48, 64, batch=2, c=columns, config=SMALL))
    rasterization = OrderBy(Row(2, 2, 2))
    check(matmul(80, 48, 64, batch=2, rasterization=rasterization, config=SMALL))


def test_rasterization_along_hilberts_curve() -> None:
    config = WgmmaConfig((64, 64, 64), 1, 2, persistent_ctas=3)
    check(matmul(256, 256, 64, rasterization=OrderBy(lg.GenP([4, 4], lg.hilbert)), config=config))


@pytest.mark.parametrize("swap_ab", [False, True])
def test_an_epilogue_with_operands(swap_ab: bool) -> None:
    m, n, k = 72, 80, 64
    rng = np.random.default_rng(3)
    a, b, old = (
        rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n), (m, n))
    )
    bias = rng.standard_normal(n).astype(np.float32)
    kernel = matmul(
        m,
        n,
        k,
        epilogue=lambda x, bias, old: lg.relu(x + bias + old.to("f32")),
        operands={
            "bias": lg.Tensor["f32", OrderBy(Row(n))],
            "old": lg.Tensor["f16", OrderBy(Row(m, n))],
        },
        config=WgmmaConfig((64, 32, 64), 1, 2, persistent_ctas=2, swap_ab=swap_ab),
    )
    found = kernel.run(a, b, np.zeros((m, n), np.float16), bias, old, device="sim").outputs["c"]
    want = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias + old, 0)
    assert np.abs(found - want).max() < 2e-3 * np.abs(want).max()


@pytest.mark.parametrize(
    "config",
    [WgmmaConfig((128, 32, 64), 1, 2), WgmmaConfig((256, 32, 64), 2, 2)],
    ids=["one consumer", "two"],
)
def test_epilogue_operands_meet_their_rows_of_the_accumulator(config: WgmmaConfig) -> None:
    """Also if a warpgroup has several wgmmas one below the other."""
    m, n, k = config.tile[0], 40, 64
    kernel = matmul(
        m,
        n,
        k,
        out="f32",
        config=config,
        epilogue=lambda x, rows, whole: x * rows + whole,
        operands={
            "rows": lg.Tensor["f32", OrderBy(Row(m, 1))],
            "whole": lg.Tensor["f32", OrderBy(Row(m, n))],
        },
    )
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, shape).astype("f2") for shape in ((m, k), (k, n)))
    rows, whole = (rng.integers(-9, 10, shape).astype("f4") for shape in ((m, 1), (m, n)))
    c = np.full((m, n), np.nan, "f4")
    kernel(a, b, c, rows, whole, device="sim")
    np.testing.assert_array_equal(c, a.astype("f4") @ b.astype("f4") * rows + whole)


def test_the_schedule_of_sm_90a_is_persistent() -> None:
    kernel = matmul(256, 128, 128)
    check(kernel)
    assert matmul(256, 128, 128, target="sm_80").schedule == "cp_async"
    assert matmul(256, 128, 128, target="sm_90").schedule == "cp_async"
    assert matmul(256, 128, 128, config=MmaConfig((64, 64, 32), (2, 2), 2)).schedule == "cp_async"
    first, *lines = kernel.explain().splitlines()
    assert first == repr(kernel)
    assert lines[1].startswith("schedule   persistent, for sm_90a")
    assert lines[2].startswith("config     tile ")
    assert all(f"{name} = {n}" in lines[3] for name, n in kernel.params.items())
    assert sum(" µs  tile " in line for line in lines) > 1


def test_every_kernel_has_an_explanation() -> None:
    plain, scheduled = (
        lg.kernel(grid=2, block=32, schedule=schedule, params={"n": 3} if schedule else None)(
            lambda: None
        )
        for schedule in (None, "unroll")
    )
    assert plain.explain() == f"{plain!r}\nno schedule"
    assert scheduled.explain() == f"{scheduled!r}\nschedule   unroll\nparams     n = 3"


@pytest.mark.parametrize(
    ("arguments", "options", "reason"),
    [
        ((64, 64, 64, "f8E5M2"), {}, "wgmma multiplies f8E5M2 only along k, .* B by row"),
        ((64, 64, 64, "i8"), {"a": OrderBy(Col(64, 64))}, "wgmma multiplies i8 only along k"),
    ],
)
def test_matrices_that_tma_cannot_copy_fall_back_to_cp_async(
    arguments: Any, options: Any, reason: str
) -> None:
    with pytest.warns(UserWarning, match=reason) as caught:
        kernel = matmul(*arguments, **options)
    assert caught[0].filename == __file__
    assert kernel.schedule == "cp_async"
    assert "not wgmma  " in kernel.explain()
    with pytest.raises(LegoError, match=reason):
        matmul(*arguments, **options, schedule="persistent")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert matmul(*arguments, **options, schedule="cp_async").schedule == "cp_async"
    assert not any("persistent" in str(warning.message) for warning in caught)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "wgmma"}, "there is no schedule 'wgmma'"),
        ({"config": SMALL, "schedule": "cp_async"}, "is for the schedule 'persistent', not"),
        (
            {"config": MmaConfig((64, 64, 32), (2, 2), 2), "schedule": "persistent"},
            "is for the schedule 'cp_async', not for 'persistent'",
        ),
        (
            {"config": SMALL, "batch": 2, "rasterization": OrderBy(Row(2, 4))},
            r"sizes \[2, 4\], but the batch has 2 GEMMs, and the grid has 2×4 tiles of 64×32",
        ),
        (
            {"config": SMALL, "rasterization": OrderBy(Row(4, 2))},
            r"the grid has 2×4 tiles of 64×32",
        ),
    ],
)
def test_options_that_contradict_each_other(options: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        matmul(128, 128, 64, **options)
