"""GEMMs with promoted accumulators: their results in the simulator and their configs."""

from __future__ import annotations

from typing import Any

import pytest

from lego_mlir import Col, OrderBy
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig


def gemm(m: int, n: int, k: int, promote: int, **more: Any) -> Kernel:
    columns = OrderBy(Col(k, n))
    return matmul(m, n, k, "f8E4M3FN", b=columns, promote=promote, target="sm_90a", **more)


def test_a_chosen_config_is_promoted() -> None:
    kernel = gemm(128, 96, 1024, 2, out="f32")
    assert "promote 2" in kernel.explain()
    comparison = kernel.run(device="sim").comparison
    assert comparison is not None
    assert comparison.equal, str(comparison)


def test_a_chosen_tile_leaves_registers_for_two_accumulators() -> None:
    plain, promoted = (gemm(4096, 4096, 4096, p).explain().splitlines()[3] for p in (0, 4))
    assert "128×256" in plain or "256×128" in plain
    assert "promote 4" in promoted
    assert "×256×" not in promoted
    assert "overlapped epilogue" not in promoted


def test_a_users_config_is_promoted() -> None:
    config = WgmmaConfig((64, 96, 128), 1, 3)
    kernel = gemm(64, 96, 256, 1, config=config)
    assert "promote 1" in kernel.explain()
    assert "promote" not in gemm(64, 96, 256, 0, config=config).explain().splitlines()[3]


def test_a_tile_with_too_many_accumulators_is_refused() -> None:
    config = WgmmaConfig((128, 256, 128), 2, 3)
    with pytest.raises(LegoError, match="128 accumulators, which are promoted: 256 registers"):
        gemm(256, 256, 256, 4, config=config)


def test_an_overlapped_epilogue_is_refused() -> None:
    config = WgmmaConfig((64, 64, 128), 1, 3, persistent_ctas=2, overlap_epilogue=True)
    with pytest.raises(LegoError, match="leave no registers"):
        gemm(512, 64, 1024, 4, config=config)


@pytest.mark.parametrize(("dtype", "promote"), [("i8", 2), ("f16", -1)])
def test_wrong_promotions_are_refused(dtype: str, promote: int) -> None:
    with pytest.raises(LegoError, match=f"promote = {promote} with .* accumulators"):
        matmul(64, 64, 64, dtype, promote=promote, target="sm_90a")
