"""Several products in one launch, in the simulator, against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from products import encoded

import lego_mlir as lg
from lego_mlir import Col, OrderBy
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import grouped_matmul
from lego_mlir.kernels.hopper import HopperConfig
from lego_mlir.runtime.simulator import Simulator

SMALL = HopperConfig((64, 64, 64), 1, 3)
SHAPES = [(128, 64, 128), (72, 136, 64), (64, 64, 320), (8, 8, 8)]
"""Whole tiles and partial ones, one step over k and many."""


def check(
    kernel: lg.Kernel, shapes: Sequence[tuple[int, int, int]], dtype: str = "f16", order: str = ""
) -> None:
    """It computes what NumPy does, on small integers, whose sums are exact."""
    random = np.random.default_rng(0)
    given, wanted = [], []
    for m, n, k in shapes:
        a, b = random.integers(-2, 3, (m, k)), random.integers(-2, 3, (k, n))
        given += [encoded(a, dtype), encoded(b, dtype)]
        given.append(np.zeros((m, n), np.float16))
        wanted.append((a @ b).astype(np.float16))
    artifact = kernel.compile("sm_90a")
    device: Any = Simulator(order=(order, 0)) if order else Simulator()
    result = lg.run(artifact, given, device)
    for found, exact in zip(result.outputs.values(), wanted, strict=True):
        np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("order", ["late", "early", "random"])
@pytest.mark.parametrize("resident", [0, 3])
def test_products_of_any_sizes(order: str, resident: int) -> None:
    config = HopperConfig((64, 64, 64), 1, 3, resident=resident)
    kernel = grouped_matmul(SHAPES, config=config, target="sm_90a")
    assert len(kernel.compile("sm_90a").launches) == 1
    check(kernel, SHAPES, order=order)


def test_one_product() -> None:
    check(grouped_matmul(SHAPES[:1], config=SMALL, target="sm_90a"), SHAPES[:1])


def test_two_warpgroups_and_a_division_that_is_chosen() -> None:
    config = HopperConfig((128, 64, 64), 2, 3)
    check(grouped_matmul(SHAPES, config=config, target="sm_90a"), SHAPES)
    check(grouped_matmul(SHAPES[:2], target="sm_90a"), SHAPES[:2])


def test_many_products_leave_wgmma_undisturbed() -> None:
    """Neither a jump table nor a call stands beside it: the build would fail."""
    shapes = [(64 * i, 128, 192) for i in range(1, 10)]
    kernel = grouped_matmul(shapes, config=SMALL, target="sm_90a")
    ptx = kernel.compile("sm_90a").ptx
    assert "brx.idx" not in ptx
    assert "div." not in ptx


def test_column_major_factors() -> None:
    shapes = SHAPES[:2]
    a = [OrderBy(Col(m, k)) for m, _, k in shapes]
    b = [OrderBy(Col(k, n)) for _, n, k in shapes]
    check(grouped_matmul(shapes, a=a, b=b, config=SMALL, target="sm_90a"), shapes)


def test_8_bit_floats_in_two_levels() -> None:
    shapes = [(64, 48, 384), (72, 16, 128)]
    b = [OrderBy(Col(k, n)) for _, n, k in shapes]
    config = HopperConfig((64, 32, 128), 1, 3)
    kernel = grouped_matmul(shapes, "f8E4M3FN", b=b, config=config, promote=2, target="sm_90a")
    check(kernel, shapes, "f8E4M3FN")


def test_an_epilogue() -> None:
    shapes = SHAPES[:2]
    kernel = grouped_matmul(shapes, epilogue=lambda x: -x, config=SMALL, target="sm_90a")
    ones = [np.ones(s, np.float16) for m, n, k in shapes for s in ((m, k), (k, n), (m, n))]
    result = lg.run(kernel.compile("sm_90a"), ones, Simulator())
    for found, (_, _, k) in zip(result.outputs.values(), shapes, strict=True):
        np.testing.assert_array_equal(found, -k)


@pytest.mark.parametrize(
    ("shapes", "given", "message"),
    [
        ([], {}, "0 products of f16"),
        ([(64, 64, 64)], {"dtype": "i8"}, "1 products of i8"),
        ([(64, 0, 64)], {}, r"\(64, 0, 64\) is no product's"),
        ([(64, 64, 64), (64, 64, 60)], {}, "A: "),
        (SHAPES, {"b": [OrderBy(Col(8, 8))]}, "1 layouts b for 4 products"),
        ([(64, 64, 64)], {"dtype": "f8E4M3FN"}, "only along k"),
        (SHAPES, {"config": HopperConfig((64, 64, 64), 1, 3, cluster=(2, 1))}, "cluster 2×1"),
    ],
)
def test_what_cannot_be_grouped(shapes: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        grouped_matmul(shapes, target="sm_90a", **given)


def test_orders_differ() -> None:
    shapes = SHAPES[:2]
    b = [OrderBy(Col(k, n)) if n == 64 else lg.OrderBy(lg.Row(k, n)) for _, n, k in shapes]
    with pytest.raises(LegoError, match="product 1 has an A by row and a B by row"):
        grouped_matmul(shapes, b=b, target="sm_90a")


def test_tiles_among_which_a_kernel_chooses_lie_alike() -> None:
    tiles = lg.OrderBy(lg.Row(64, 64))
    places = [lg.OrderBy(lg.GenP([64, 64], lg.tma_swizzle(128, 2))), tiles]

    def kernel(a: Any, b: Any, c: Any) -> None:
        @lg.fold(1, lg.zeros((64, 64), "f32"))
        def total(_: Any, total: Any) -> Any:
            both = [lambda s=s: a.staged(s)[:, :] for s in places]
            right = b.staged(places[0])[:, :]
            left = lg.choose(lg.block_id(), both)
            return lg.dot(left, right, total, warps=lg.OrderBy(lg.Row(4, 1)))

        c.staged(places[0])[:, :] = total.to("f16")

    types = {name: lg.TensorType("f16", tiles, 16) for name in "abc"}
    made = lg.kernel(grid=2, block=128, parameters=types, schedule="wgmma")(kernel)
    with pytest.raises(LegoError, match="A has two layouts in shared memory") as caught:
        made.compile("sm_90a")
    assert caught.value.hint == "tiles among which a kernel chooses lie alike there"
