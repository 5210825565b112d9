"""GEMMs by wgmma whose producer warps copy tiles of operands that TMA does not take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import lego_mlir as lg
from lego_mlir import OrderBy, RegP, runtime
from lego_mlir.compiler.driver import Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

ORDERS = ("late", "early", "random:1")
SMALL = WgmmaConfig((64, 32, 64), 1, 3)

ODD, EVEN = (70, 53, 77), (70, 54, 78)
"""Rows of 2-byte elements that begin at multiples of 2 and of 4 bytes."""


def layout(order: str, *shape: int) -> lg.Layout:
    """Return the layout of a matrix or of a batch, whose rows or columns are contiguous."""
    lead = len(shape) - 2
    last = [lead, lead + 1] if order == "row" else [lead + 1, lead]
    return OrderBy(RegP(list(shape), [*range(lead), *last]))


def check(kernel: Any, orders: tuple[str, ...] = ("random:1",)) -> None:
    """Check that a kernel of the schedule `persistent` computes what NumPy does."""
    assert kernel.schedule == "persistent"
    for order in orders:
        comparison = kernel.run(device=runtime.select("sim", order=order)).comparison
        assert comparison is not None
        assert comparison.equal, str(comparison)


@pytest.mark.parametrize("names", ["a", "b", "ab"])
@pytest.mark.parametrize("sizes", [ODD, EVEN])
@pytest.mark.parametrize("orders", [("row", "col"), ("col", "row")])
def test_operands_in_every_order_of_completion(
    names: str, sizes: tuple[int, int, int], orders: tuple[str, str]
) -> None:
    m, n, k = sizes
    a, b = orders
    config = replace(SMALL, copied_by_threads=names)
    check(matmul(m, n, k, a=layout(a, m, k), b=layout(b, k, n), config=config), ORDERS)


@pytest.mark.parametrize(
    "config",
    [
        WgmmaConfig((64, 32, 64), 1, 3, split_k=2),
        WgmmaConfig((64, 32, 64), 1, 3, one_cta_per_sm=True),
        WgmmaConfig((64, 32, 64), 1, 3, split_k=2, split_k_through="l2", deterministic=True),
        WgmmaConfig((128, 32, 64), 2, 3, swap_ab=True),
        WgmmaConfig((128, 32, 64), 2, 3, persistent_ctas=2, ping_pong=True),
        WgmmaConfig((128, 32, 64), 2, 2, persistent_ctas=2, overlap_epilogue=True),
    ],
)
@pytest.mark.parametrize("sizes", [(201, 123, 155), (202, 126, 154)])
def test_configs(config: WgmmaConfig, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    config = replace(config, copied_by_threads="ab")
    check(matmul(m, n, k, b=layout("col", k, n), config=config))


@pytest.mark.parametrize(
    ("name", "cluster", "swap_ab"),
    [("a", (2, 1), False), ("b", (1, 2), False), ("a", (1, 2), True)],
)
def test_a_cluster_shares_the_other_operand(
    name: str, cluster: tuple[int, int], swap_ab: bool
) -> None:
    m, n, k = 202, 126, 154
    config = replace(SMALL, cluster=cluster, swap_ab=swap_ab, copied_by_threads=name)
    check(matmul(m, n, k, b=layout("col", k, n), config=config))
    with pytest.raises(LegoError, match="share tiles of"):
        matmul(m, n, k, config=replace(config, cluster=cluster[::-1]))


@pytest.mark.parametrize(("dtype", "k"), [("f8E4M3FN", 147), ("i8", 148)])
def test_elements_of_8_bits(dtype: str, k: int) -> None:
    m, n = 67, 45
    config = WgmmaConfig((64, 32, 128), 1, 2, copied_by_threads="ab")
    check(matmul(m, n, k, dtype, b=layout("col", k, n), config=config))


def test_a_batch() -> None:
    m, n, k = 66, 35, 70
    config = replace(SMALL, copied_by_threads="ab")
    layouts = {"a": layout("row", 3, m, k), "b": layout("col", 3, k, n)}
    check(matmul(m, n, k, batch=3, **layouts, config=config))


def workspaces(names: str, c: str, n: int = 126) -> list[str]:
    """Return the workspaces of a GEMM whose operands of these names threads copy."""
    m, k = 202, 154
    layouts = {"b": layout("col", k, n), "c": layout(c, m, n)}
    kernel = matmul(m, n, k, **layouts, config=replace(SMALL, copied_by_threads=names))
    artifact = kernel.compilation(Options(target=Target.parse("sm_90a"))).artifact(assemble=False)
    return [w.name for w in artifact.workspaces]


def test_operands_are_those_of_the_gemm_with_a_row_major_c() -> None:
    assert workspaces("", "row") == ["a_repitched", "b_repitched"]
    assert workspaces("a", "row") == ["b_repitched"]
    assert workspaces("a", "col") == ["a_repitched"]
    assert workspaces("ab", "col") == []


def test_what_tma_takes_is_not_copied_by_threads() -> None:
    m, n, k = 64, 64, 64
    config = replace(SMALL, copied_by_threads="ab")
    kernel = matmul(m, n, k, config=config)
    artifact = kernel.compilation(Options(target=Target.parse("sm_90a"))).artifact(assemble=False)
    assert "cp.async.ca" not in artifact.ptx
    assert "A and B copied by threads" in kernel.explain()


def test_names_of_other_operands() -> None:
    with pytest.raises(LegoError, match="copied_by_threads names operands"):
        WgmmaConfig((64, 32, 64), 1, 2, copied_by_threads="c").check(
            Problem(64, 64, 64, "f16", "f16"), 1 << 17
        )


@pytest.mark.parametrize(
    ("config", "k", "warps"),
    [
        (replace(SMALL, one_cta_per_sm=True), 65, 8),
        (replace(SMALL, one_cta_per_sm=True, copied_by_threads="a"), 65, 12),
        (replace(SMALL, one_cta_per_sm=True, copied_by_threads="a", swap_ab=True), 65, 12),
        (replace(SMALL, one_cta_per_sm=True, copied_by_threads="a"), 66, 8),
        (replace(SMALL, copied_by_threads="a"), 65, 8),
    ],
)
def test_the_only_cta_of_a_multiprocessor_has_more_warps_that_copy_elements(
    config: WgmmaConfig, k: int, warps: int
) -> None:
    """By less than 4 bytes at a time, through registers."""
    kernel = matmul(64, 64, k, b=layout("row", k, 64), config=config)
    artifact = kernel.compilation(Options(target=Target.parse("sm_90a"))).artifact(assemble=False)
    *_, multiply = artifact.launches
    assert multiply.block[0] == 32 * warps
