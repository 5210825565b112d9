"""What tests of every kernel of `permute` share: random permutations, and NumPy's word on them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lego_mlir import Kernel, runtime
from lego_mlir.kernels import permute

DTYPES = {"i8": np.int8, "f16": np.float16, "f32": np.float32, "f64": np.float64}


def check(
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    dtype: str,
    order: str = "random:1",
    made: Kernel | None = None,
    **options: Any,
) -> None:
    """Compare a kernel, that of `permute` if none is given, with NumPy in the simulator.

    The output is poisoned before.
    """
    x = (np.arange(prod(shape)) % 2039).reshape(shape).astype(DTYPES[dtype])
    y = np.full([shape[k] for k in axes], -1, DTYPES[dtype])
    artifact = (made or permute(shape, axes, dtype, **options)).compile(check=True)
    runtime.launch(artifact, x, y, device=runtime.select("sim", order=order))
    np.testing.assert_array_equal(y, x.transpose(axes))


@st.composite
def permutations(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw a shape of one to five dimensions, and an order of them."""
    rank = draw(st.integers(1, 5))
    most = (4096, 200, 30, 12, 8)[rank - 1]
    shape = tuple(draw(st.integers(1, most)) for _ in range(rank))
    return shape, tuple(draw(st.permutations(range(rank))))
