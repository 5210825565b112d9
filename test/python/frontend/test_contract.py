"""Products that are added before they are rounded, where a kernel asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg

COUNT = 64


@pytest.mark.parametrize("contract", [False, True])
def test_a_product_is_rounded_before_it_is_added_unless_the_kernel_contracts(
    contract: bool,
) -> None:
    def kernel(x: Any, y: Any) -> None:
        tile = x[:]
        y[:] = tile * tile - 1.0

    line = lg.Tensor["f32", (COUNT,)]
    made = lg.kernel(grid=1, warps=1, parameters={"x": line, "y": line}, contract=contract)(kernel)
    x = (1 + np.random.default_rng(5).random(COUNT) * 2.0**-9).astype(np.float32)
    y = np.empty_like(x)
    made(x, y)
    # The f64 of a product is exact, and so is its difference to 1.
    exact = (np.float64(x) ** 2 - 1).astype(np.float32)
    rounded = x * x - np.float32(1)
    assert (exact != rounded).any()
    assert (y == (exact if contract else rounded)).all()
