"""Split-K through the L2 cache, in the simulator: slices, clusters, order, workspaces, errors."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import Col, OrderBy, Row, runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import WgmmaConfig, matmul
from lego_mlir.kernels.gemm.problem import Problem

CONFIG = WgmmaConfig((64, 32, 64), 1, 2, split_k=3, split_k_through="l2")


def check(kernel: Any, *orders: str) -> None:
    """Check that a kernel computes what NumPy does, and leaves zeros for the next launch.

    The simulator, in these orders, checks that zeroed workspaces are so after a launch.
    """
    assert any(workspace.zeroed for workspace in kernel.compile("sm_90a").workspaces)
    for order in orders or ("late",):
        comparison = kernel.run(device=runtime.select("sim", order=order)).comparison
        assert comparison is not None
        assert comparison.equal, f"{order}: {comparison}"


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2)])
def test_slices_of_edge_tiles(cluster: tuple[int, int], deterministic: bool) -> None:
    """Five iterations in slices of two, two and one."""
    config = replace(CONFIG, cluster=cluster, deterministic=deterministic)
    check(matmul(72, 56, 300, config=config), "late", "early", "random:5")


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    "config",
    [
        replace(CONFIG, split_k=5),
        replace(CONFIG, tile=(128, 48, 64), consumers=2),
        replace(CONFIG, tile=(128, 16, 64), consumers=1, swap_ab=True),
    ],
)
def test_configs(config: WgmmaConfig, deterministic: bool) -> None:
    check(matmul(136, 72, 320, config=replace(config, deterministic=deterministic)))


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(("dtype", "out"), [("i8", "i32"), ("i8", "f16"), ("bf16", "f32")])
def test_element_types(dtype: str, out: str, deterministic: bool) -> None:
    k = 128 if dtype == "i8" else 64
    config = replace(CONFIG, tile=(64, 32, k), deterministic=deterministic)
    check(matmul(64, 48, 5 * k, dtype, out=out, b=OrderBy(Col(5 * k, 48)), config=config))


def test_a_batch_has_sums_for_each_tile() -> None:
    kernel = matmul(72, 32, 192, batch=3, config=CONFIG)
    sums, arrivals = kernel.compile("sm_90a").workspaces
    assert (sums.shape, arrivals.shape) == ((6 * 64 * 32,), (6,))
    check(kernel)


def test_an_epilogue_sees_the_sum_once() -> None:
    kernel = matmul(
        64,
        32,
        192,
        out="f32",
        epilogue=lambda x, bias: lg.relu(x) + bias,
        operands={"bias": lg.Tensor["f32", OrderBy(Row(32))]},
        config=CONFIG,
    )
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, s).astype(np.float16) for s in ((64, 192), (192, 32)))
    bias = np.arange(32, dtype=np.float32)
    found = kernel.run(a, b, np.zeros((64, 32), np.float32), bias, device="sim").outputs["c"]
    product = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(found, np.maximum(product, 0) + bias)


def test_slices_that_are_added_in_order_give_the_same_bits() -> None:
    """Their sum in f32 is that of NumPy, slice by slice, whatever the order of CTAs."""
    config = replace(CONFIG, deterministic=True)
    kernel = matmul(64, 32, 192, out="f32", config=config)
    random = np.random.default_rng(2)
    a, b = (random.standard_normal(s).astype(np.float16) for s in ((64, 192), (192, 32)))
    empty = np.zeros((64, 32), np.float32)
    found = [
        kernel.run(a, b, empty, device=runtime.select("sim", order=order)).outputs["c"]
        for order in ("late", "early", "random:1", "random:2")
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_sums_are_added_by_vectors() -> None:
    """One instruction adds 16 bytes of each lane; every CTA adds, the last one of a tile loads."""
    kernel = matmul(64, 32, 192, config=CONFIG)
    (costs,) = kernel.run(device="sim", costs=True).costs
    added = [row for row in costs.memory if row.instruction.opcode.startswith("red.")]
    assert {row.instruction.opcode for row in added} == {"red.relaxed.gpu.global.add.v4.f32"}
    assert sum(row.bytes for row in added) == 3 * 64 * 32 * 4
    loaded = [row for row in costs.memory if row.instruction.opcode.startswith("ld.global")]
    assert sum(row.bytes for row in loaded) == 64 * 32 * 4


def test_clusters_still_multicast() -> None:
    text = matmul(128, 32, 192, config=replace(CONFIG, cluster=(2, 1))).compilation().text("ptx")
    assert len(re.findall("multicast::cluster", text)) == 1  # only B is the same for both


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split_k_through": "dram"}, "split_k_through is 'cluster' or 'l2'"),
        ({"split_k": 0}, "split_k is a number of slices"),
        ({"split_k": 4}, "5 iterations of the K loop leave none for the last split-K slice"),
        ({"persistent_ctas": 2}, "the kernel is not persistent"),
        ({"split_k_through": "cluster"}, "a CTA stores 10.6667 columns"),
    ],
)
def test_configs_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    config = replace(CONFIG, **changes)
    with pytest.raises(LegoError, match=message):
        config.check(Problem(64, 64, 320, "f16", "f16"), 232448)
