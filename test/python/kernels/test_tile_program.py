"""GEMMs by `wgmma`, which are programs on tiles: forms of configs, beside `test_wgmma_matmul`."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import Col, OrderBy, Row, runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import KernelChoice
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

PERSISTENT = WgmmaConfig((64, 64, 64), 1, 3, persistent_ctas=3)
PING_PONG = replace(PERSISTENT, consumers=2, persistent_ctas=1, ping_pong=True)
OVERLAPPED = replace(PERSISTENT, overlap_epilogue=True)


def check(kernel: Any, order: str) -> None:
    """Check in the simulator that a kernel computes what NumPy does."""
    result = kernel.run(device=runtime.select("sim", order=order))
    assert result.comparison is not None
    assert result.comparison.equal, str(result.comparison)


@pytest.mark.parametrize(
    ("sizes", "options", "config", "order"),
    [
        ((136, 128, 320), {"out": "f32"}, OVERLAPPED, "late"),
        (
            (136, 48, 384),  # slices of 2 and 1 iterations, of 24 columns
            {"dtype": "i8"},
            replace(
                PERSISTENT,
                tile=(64, 24, 128),
                persistent_ctas=0,
                split_k=2,
                split_k_through="l2",
            ),
            "early",
        ),
        ((128, 256, 200), {"c": OrderBy(Col(128, 256))}, OVERLAPPED, "random:1"),
        ((128, 256, 40), {}, OVERLAPPED, "late"),
        ((192, 192, 256), {}, replace(PERSISTENT, persistent_ctas=0, cluster=(2, 2)), "late"),
        (
            (128, 64, 448),  # slices of 2, 2, 2 and 1 iterations
            {},
            replace(
                PERSISTENT,
                persistent_ctas=0,
                cluster=(2, 1),
                split_k=4,
                split_k_through="l2",
                deterministic=True,
            ),
            "early",
        ),
        (
            (200, 128, 256),
            {},
            replace(PING_PONG, tile=(64, 128, 64)),
            "random:3",
        ),
        ((80, 48, 64), {"batch": 3}, replace(PERSISTENT, tile=(64, 32, 64), stages=2), "early"),
        (
            (64, 128, 640),  # sums of 2, 2 and 1 iterations
            {"dtype": "f8E4M3FN"},
            replace(PERSISTENT, tile=(64, 64, 128), persistent_ctas=0, promote=2),
            "random:2",
        ),
    ],
)  # fmt: skip
def test_every_form_is_correct(
    sizes: tuple[int, int, int], options: dict[str, Any], config: WgmmaConfig, order: str
) -> None:
    m, n, k = sizes
    if options.get("dtype", "f16") != "f16":
        options = {**options, "b": OrderBy(Col(k, n))}
    kernel = matmul(m, n, k, config=config, **options)
    assert kernel.schedule == "persistent"
    check(kernel, order)


def random_gemm(seed: int) -> tuple[tuple[int, int, int], dict[str, Any], WgmmaConfig]:
    """Return any sizes, orders and parameters of a config that go together."""
    draw = random.Random(seed).choice
    dtype = draw(["f16", "bf16", "f8E4M3FN"])
    unit = 8 if dtype != "f8E4M3FN" else 16  # elements of 16 bytes
    consumers = draw([1, 2])
    m, n, k = 64 * consumers * draw([1, 2]), draw([32, 64, 128]), draw([2, 4, 8]) * unit
    cluster, steps = draw([(1, 1), (1, 2), (2, 1), (2, 2)]), draw([1, 3, 5])
    down, across = cluster[0] * draw([1, 2]), cluster[1] * draw([1, 2])
    sizes = (down * m - draw([0, unit]), across * n - draw([0, unit]), steps * k - draw([0, unit]))
    orders = (draw([Row, Col]), draw([Row, Col])) if unit == 8 else (Row, Col)
    ctas = prod(cluster)
    config = WgmmaConfig(
        (m, n, k),
        consumers,
        draw([2, 3, 4]),
        cluster,
        persistent_ctas=draw([ctas, 2 * ctas, 0]) if down * across > 2 * ctas else 0,
    )
    can_overlap = config.persistent_ctas and steps >= 5 and dtype != "f8E4M3FN"
    config = replace(config, overlap_epilogue=bool(can_overlap and draw([False, True])))
    a, b = sizes[0::2], sizes[:0:-1]
    layouts = {"a": OrderBy(orders[0](*a)), "b": OrderBy(orders[1](*b))}
    return sizes, {"dtype": dtype, "target": "sm_90a", **layouts}, config


@pytest.mark.parametrize("seed", range(8))
def test_random_gemms(seed: int) -> None:
    sizes, options, config = random_gemm(seed)
    check(matmul(*sizes, config=config, **options), ("late", "early", "random:1")[seed % 3])


@pytest.mark.parametrize("config", [OVERLAPPED, replace(OVERLAPPED, swap_ab=True), PING_PONG])
def test_an_epilogue_of_persistent_tiles(config: WgmmaConfig) -> None:
    m, n, k = 136, 128, 128
    rng = np.random.default_rng(3)
    a, b, old = (rng.integers(-2, 3, s).astype("f2") for s in ((m, k), (k, n), (m, n)))
    bias, scale = rng.integers(-2, 3, n).astype("f4"), rng.integers(1, 3, (m, 1)).astype("f4")
    kernel = matmul(
        m, n, k,
        epilogue=lambda x, bias, scale, old, beta: (x + bias) * scale + beta * old.to("f32"),
        operands={
            "bias": lg.Tensor["f32", OrderBy(Row(n))],
            "scale": lg.Tensor["f32", OrderBy(Row(m, 1))],
            "old": lg.Tensor["f16", OrderBy(Row(m, n))],
            "beta": lg.Scalar["f32"],
        },
        config=config,
    )  # fmt: skip
    c = np.full((m, n), np.nan, "f2")
    kernel(a, b, c, bias, scale, old, 0.5, device="sim")
    expected = (a.astype("f4") @ b.astype("f4") + bias) * scale + 0.5 * old.astype("f4")
    np.testing.assert_array_equal(c, expected.astype("f2"))


@pytest.mark.parametrize("config", [PERSISTENT, PING_PONG])
def test_threads_store_wide_tiles_in_parts(config: WgmmaConfig) -> None:
    """Rows of C begin between 16 bytes, so that TMA does not take them."""
    config = replace(config, tile=(64, 160, 64), stages=2, persistent_ctas=1)
    kernel = matmul(72, 137, 80, config=config, target="sm_90a")
    barriers = kernel.compile("sm_90a").ptx.count("bar.sync \t1, 128")
    assert barriers == 0 if config.ping_pong else barriers > 2  # of each part
    for order in ("late", "early", "random"):
        check(kernel, order)


@pytest.mark.parametrize("columns", [24, 40])
def test_a_tile_is_stored_while_the_last_one_is_read(columns: int) -> None:
    """Rows of an odd number of 16-byte chunks are stored whole, by one copy."""
    config = replace(PERSISTENT, tile=(64, columns, 64), consumers=1)
    kernel = matmul(256, 240, 64, b=OrderBy(Col(64, 240)), config=config, target="sm_90a")
    ptx = kernel.compile("sm_90a").ptx
    assert ptx.count("cp.async.bulk.tensor.2d.global.shared::cta") == 1
    assert re.findall(r"bulk\.wait_group\.read \t?(\d);", ptx) == ["1", "0"]


SPLIT = WgmmaConfig((64, 64, 64), 1, 3, split_k=2, split_k_through="l2")


@pytest.mark.parametrize(
    "config",
    [OVERLAPPED, replace(PERSISTENT, persistent_ctas=4, cluster=(2, 2)), SPLIT],
    ids=["overlapped", "clusters", "split-K"],
)
def test_rows_that_only_the_launch_knows(config: WgmmaConfig) -> None:
    kernel = matmul(None, 72, 136, config=config, target="sm_90a")
    rng = np.random.default_rng(5)
    for m in (8, 200):
        a, b = (rng.integers(-2, 3, s).astype("f2") for s in ((m, 136), (136, 72)))
        c = np.full((m, 72), np.nan, "f2")
        kernel(a, b, c, device="sim")
        np.testing.assert_array_equal(c, (a.astype("f4") @ b.astype("f4")).astype("f2"))


def test_slices_of_rows_that_only_the_launch_knows_step_by_step() -> None:
    """The interpreter of tile IR has the workspaces of a grid that the host computes, too."""
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-2, 3, s).astype("f2") for s in ((72, 136), (136, 72)))
    made = matmul(None, 72, 136, config=SPLIT, target="sm_90a")
    assert isinstance(made, KernelChoice)
    kernel = made.function_for({"M": 72})
    assert isinstance(kernel, lg.Kernel)
    lines = kernel.check_each_step(a, b, np.zeros((72, 72), "f2"))
    assert "the schedule: every element is the same" in lines


def test_split_k_of_clusters_is_for_known_rows() -> None:
    with pytest.raises(LegoError, match=r"needs to know the grid of split-K of clusters"):
        matmul(None, 128, 192, config=replace(SPLIT, cluster=(1, 2)), target="sm_90a")
