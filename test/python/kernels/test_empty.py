"""GEMMs with sizes of 0, and sizes beyond what memory, grids or TMA can have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import OrderBy, Row
from lego_mlir.compiler.driver import Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm.unaligned.repitch import Repitch, repitch_kernel
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

TARGETS = ("sm_80", "sm_90a")


def run(kernel: Any, *shapes: tuple[int, ...], extra: tuple[Any, ...] = ()) -> Any:
    """Return C of a kernel whose matrices have these shapes."""
    arrays = [np.full(shape, np.nan, np.float16) for shape in shapes]
    kernel(*arrays, *extra, device="sim")
    return arrays[-1]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", [(0, 5, 7), (5, 0, 7), (0, 0, 0), (5, 0, 0)])
def test_without_rows_or_columns_nothing_is_launched(sizes: Any, target: str) -> None:
    m, n, k = sizes
    kernel = matmul(m, n, k, target=target)
    assert kernel.compile(target).launches == ()
    assert run(kernel, (m, k), (k, n), (m, n)).shape == (m, n)
    assert "C is empty" in kernel.explain()


def test_a_batch_of_no_gemms() -> None:
    kernel = matmul(5, 7, 3, batch=0, target="sm_90a")
    assert run(kernel, (0, 5, 3), (0, 3, 7), (0, 5, 7)).shape == (0, 5, 7)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "n"), [(5, 7), (64, 64), (1, 1)])
def test_without_k_the_result_is_zeros(m: int, n: int, target: str) -> None:
    c = run(matmul(m, n, 0, target=target), (m, 0), (0, n), (m, n))
    np.testing.assert_array_equal(c, np.zeros((m, n)))


def test_without_k_the_result_is_the_epilogues() -> None:
    m, n = 5, 7
    kernel = matmul(
        m, n, 0, batch=2, target="sm_90a", alignment=2,
        epilogue=lambda x, bias: x + bias.to("f32"),
        operands={"bias": lg.Tensor["f16", OrderBy(Row(n))]},
    )  # fmt: skip
    bias = np.arange(n, dtype=np.float16)
    c = run(kernel, (2, m, 0), (2, 0, n), (2, m, n), extra=(bias,))
    np.testing.assert_array_equal(c, np.broadcast_to(bias, (2, m, n)))


def test_without_k_addresses_may_be_unaligned() -> None:
    config = WgmmaConfig((64, 32, 64), 1, 2)
    kernel = matmul(64, 64, 0, target="sm_90a", alignment=2, config=config)
    assert not run(kernel, (64, 0), (0, 64), (64, 64)).any()


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ((-1, 2, 3), r"\[-1, 2, 3\] are not sizes"),
        ((2.0, 2, 3), r"\[2.0, 2, 3\] are not sizes"),
        ((True, 2, 3), "are not sizes"),
        ((2**40, 2**40, 1), "those of a matrix of 281474976710656 elements or more"),
        ((2**62, 64, 64), "those of a matrix of 281474976710656 elements or more"),
        ((2**40, 64, 64), "tiles of .*, and a grid at most 2147483647 CTAs"),
    ],
)
@pytest.mark.filterwarnings("ignore:matmul")
def test_sizes_that_no_gpu_has(sizes: Any, told: str) -> None:
    with pytest.raises(LegoError, match=told):
        matmul(*sizes, target="sm_90a")


@pytest.mark.parametrize("k", [2**33, 2**33 + 1, 2**31 + 8])
def test_dimensions_beyond_the_coordinates_of_tma(k: int) -> None:
    with pytest.warns(UserWarning, match="A: TMA takes up to 2147483648 elements along"):
        kernel = matmul(64, 64, k, target="sm_90a")
    assert kernel.schedule == "cp_async"
    with pytest.raises(LegoError, match="TMA takes up to 2147483648 elements"):
        matmul(64, 64, k, target="sm_90a", schedule="persistent")


def test_offsets_beyond_32_bits_are_computed_in_64() -> None:
    """A matrix of 70001 × 70001 elements of 2 bytes; the last one is at byte 9.8e9."""
    for n, width in ((70001, 64), (101, 32)):
        kernel = repitch_kernel({"x": Repitch(OrderBy(Row(n, n)), "f16", 16)})
        assert f"lego.index_bitwidth = {width}" in kernel.compilation().text("index")


def test_workspaces_beyond_32_bits_are_counted() -> None:
    kernel = matmul(70001, 70001, 70001, target="sm_90a")
    artifact = kernel.compilation(Options(target=Target.parse("sm_90a"))).artifact(assemble=False)
    assert artifact.workspace_bytes == 2 * 70001 * 70016 * 2
