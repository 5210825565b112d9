"""Persistent kernels on tiles: rings that run on from one program to the next, in the simulator."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tile_attention import attention, check_against_numpy

import lego_mlir as lg
from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime.simulator import Simulator
from lego_mlir.step_checks import check_each_step

INPUTS = Path(__file__).resolve().parents[3] / "tile_steps" / "Inputs"
ORDERS = ("late", "early", "random")


def _gemm(m: int | str, n: int, k: int, **params: int) -> Any:
    """Return a GEMM of tiles of 64 rows and columns, k in steps of 64; `m` may be a symbol."""
    a_matrix, b_matrix, c_matrix = (
        lg.Tensor["f16", f"{rows}, {columns}", 16] for rows, columns in ((m, k), (k, n), (m, n))
    )

    def grid(a: Any) -> tuple[Any, Any]:
        return -(-n // 64), -(-a.shape[0] // 64)

    @lg.kernel(grid=grid, warps=4, schedule="persistent", params=params)
    def gemm(a: a_matrix, b: b_matrix, c: c_matrix) -> None:
        i, j = lg.block_id("y"), lg.block_id("x")

        @lg.fold(-(-k // 64), lg.zeros((64, 64), "f32"))
        def sums(step: Any, sums: Any) -> Any:
            return lg.dot(a.tile(64, 64)[i, step], b.tile(64, 64)[step, j], sums)

        c.tile(64, 64)[i, j] = sums.to("f16")

    return gemm


@pytest.mark.parametrize(
    ("shape", "ctas", "group", "more"),
    [
        ((128, 192, 192), 4, 2, {}),  # CTAs with one tile, and with two
        ((200, 136, 72), 2, 2, {"stages": 3}),  # padded, and the last group is smaller
        ((64, 320, 64), 1, 8, {"stages": 4}),  # one row, one iteration a tile: fewer than stages
        ((128, 128, 128), 132, 8, {"store_stages": 1}),  # a CTA for each tile
        ((200, 136, 72), 2, 2, {"store_stages": 2, "cluster": 2, "producer_warps": 1}),
        ((256, 64, 64), 4, 4, {"cluster": 4, "store_stages": 2, "store_parts": 4}),
    ],
)
def test_a_gemm_in_all_orders(
    shape: tuple[int, int, int], ctas: int, group: int, more: dict[str, int]
) -> None:
    kernel = _gemm(*shape, ctas=ctas, raster_group=group, **{"stages": 2} | more)
    lines = check_each_step(kernel.compilation())
    assert [line.partition(":")[0] for line in lines][-4:] == [
        "the schedule",
        *(f"lowering, run in the simulator ({order})" for order in ORDERS),
    ]
    assert all(line.endswith("every element is the same") for line in lines[-3:])


@pytest.mark.parametrize(
    ("columns", "order", "params"),
    [
        (192, "OrderBy(Row(grid_y, 3))", {"ctas": 4, "store_stages": 2, "store_parts": 4}),
        (
            256,
            "OrderBy(RegP([grid_y, 2, 2], [1, 0, 2])).GroupBy([grid_y, 4])",
            {"ctas": 4, "cluster": 2, "raster_group": 2, "store_stages": 1},
        ),
    ],
)
def test_rows_that_only_the_launch_knows(columns: int, order: str, params: dict[str, int]) -> None:
    kernel = _gemm("M", columns, 192, **params)
    text = kernel.compilation().text("placed")
    assert f'#lego.layout<"{order}">' in text
    assert ("multicast" in text) == ("cluster" in params)
    random = np.random.default_rng(5)
    for rows in (1, 200):  # fewer programs than CTAs, and CTAs with two
        a = random.standard_normal((rows, 192)).astype(np.float16)
        lines = check_each_step(kernel.compilation(), [a, None, np.zeros((rows, columns), a.dtype)])
        assert len(lines) >= len(ORDERS)


def test_the_grid_is_at_most_the_programs() -> None:
    assert _gemm(192, 128, 64, ctas=4, stages=2).compilation().artifact().launches[0].grid[0] == 4
    assert _gemm(192, 128, 64, ctas=9, stages=2).compilation().artifact().launches[0].grid[0] == 6


def test_attention_whose_tiles_have_as_many_keys_as_they_need() -> None:
    """Two CTAs have three tiles of queries, of which the longest come first."""
    shape = 1, 136, 64
    params = {"ctas": 2, "producer_registers": 24, "consumer_registers": 240}
    schedule = str(INPUTS / "persistent_attention.mlir")
    kernel = attention(shape, causal=True, is_reversed=True, schedule=schedule, params=params)
    check_against_numpy(kernel, shape, causal=True)
    assert len(check_each_step(kernel.compilation())) >= 4


SHORT, WIDE, TALL = (lg.Tensor["f16", shape, 16] for shape in ((100, 64), (64, 128), (100, 128)))


@pytest.mark.parametrize("columns", [64, 48])
def test_a_transposed_product_is_stored_where_c_has_rows(columns: int) -> None:
    @lg.kernel(grid=(-(-100 // columns), 2), warps=4, schedule="persistent", params={"ctas": 2})
    def gemm(a: SHORT, b: WIDE, c: TALL) -> None:
        i, j = lg.block_id("y"), lg.block_id("x")

        @lg.fold(1, lg.zeros((64, columns), "f32"))
        def sums(step: Any, sums: Any) -> Any:
            return lg.dot(b.tile(64, 64)[step, i].T, a.tile(columns, 64)[j, step].T, sums)

        c.tile(columns, 64)[j, i] = sums.to("f16").T

    assert len(check_each_step(gemm.compilation())) >= 4


SPLIT = {"split_k": 3, "ctas": 4, "producer_registers": 24, "consumer_registers": 240}


@pytest.mark.parametrize(("order", "in_order"), [*((order, 0) for order in ORDERS), (ORDERS[0], 1)])
def test_slices_of_k_are_ordered(order: str, in_order: int) -> None:
    """No CTA reads what another one may still write; without the order of arrivals one would."""
    kernel = _gemm(64, 128, 192, **SPLIT, in_order=in_order)
    simulator = Simulator(order=(order, 0), global_checks=True)
    artifact = kernel.compilation().artifact(assemble=False)
    random = np.random.default_rng(7)
    a, b = (random.integers(-2, 3, s).astype(np.float16) for s in ((64, 192), (192, 128)))
    c = np.zeros((64, 128), np.float16)
    found = runtime.run(artifact, [a, b, c], device=simulator).outputs["c"]
    np.testing.assert_array_equal(found, a.astype(np.float32) @ b.astype(np.float32))
    order_lost = artifact.ptx.replace("atom.acq_rel", "atom.relaxed")
    arrivals = re.sub(r"bar\.sync\s+1, 128;", "", artifact.ptx, count=1)
    for broken in (order_lost, arrivals):
        assert broken != artifact.ptx
        with pytest.raises(LegoError, match=r"data race|which nothing has written"):
            runtime.run(replace(artifact, ptx=broken), [a, b, c], device=simulator)
