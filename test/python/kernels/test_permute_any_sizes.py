"""Permutations of tensors whose sizes only the launch knows, in the simulator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lego_mlir import kernels
from lego_mlir.algebra import Col, OrderBy, size_symbol
from lego_mlir.diagnostics import LegoError


def _check(
    kernel: Any, shapes: Sequence[tuple[int, ...]], axes: tuple[int, ...], dtype: str
) -> None:
    rng = np.random.default_rng(0)
    for shape in shapes:
        x = rng.integers(0, 100, shape).astype(dtype)
        y = np.zeros_like(np.ascontiguousarray(x.transpose(axes)))
        kernel(x, y, device="sim")
        np.testing.assert_array_equal(y, x.transpose(axes))


@pytest.mark.parametrize("variant", [None, "naive", "shared"])
@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_rows_that_only_the_launch_knows(variant: str | None, dtype: str) -> None:
    """Two compilations serve all sizes: multiples of 16, which are accessed by vectors, or not."""
    kernel = kernels.transpose(None, 96, {"f2": "f16", "f4": "f32"}[dtype], variant=variant)
    _check(kernel, [(m, 96) for m in (1, 5, 64, 67, 128)], (1, 0), dtype)
    assert len(kernel.classes()) == 2


def test_random_sizes() -> None:
    kernel = kernels.transpose(None, None)
    rng = np.random.default_rng(1)
    shapes = [(int(m), int(n)) for m, n in rng.integers(1, 80, (20, 2))]
    _check(kernel, [*shapes, (64, 32), (80, 48)], (1, 0), "f4")
    assert len(kernel.classes()) == 2
    vectors, single = (kernel.compile(sizes={"M": n, "N": n}).ptx for n in (64, 65))
    by_vectors = re.compile(r"ld\.global\S*\.v4")
    assert by_vectors.search(vectors)
    assert not by_vectors.search(single)


@pytest.mark.parametrize(
    ("shape", "axes", "shapes"),
    [
        ((None, 6, None, 16), (0, 2, 1, 3), [(2, 6, 3, 16), (16, 6, 16, 16)]),
        ((None, None, None), (2, 0, 1), [(2, 3, 5), (16, 16, 32)]),
        ((4, None), (0, 1), [(4, 7), (4, 64)]),
    ],
)
def test_permutations(
    shape: tuple[int | None, ...], axes: tuple[int, ...], shapes: list[tuple[int, ...]]
) -> None:
    _check(kernels.permute(shape, axes), shapes, axes, "f4")


def test_batches_and_layouts() -> None:
    _check(kernels.transpose(None, 48, batch=3), [(3, 5, 48), (3, 32, 48)], (0, 2, 1), "f4")
    kernel = kernels.transpose(None, 48, a=OrderBy(Col(size_symbol("M"), 48)))
    for m in (5, 32):
        x = np.asfortranarray(np.arange(m * 48, dtype=np.float32).reshape(m, 48))
        y = np.zeros((48, m), np.float32)
        kernel(x, y, device="sim")
        np.testing.assert_array_equal(y, x.T)


def test_what_is_refused() -> None:
    with pytest.raises(LegoError, match="'runs' is for sizes that are known before the launch"):
        kernels.transpose(None, 96, variant="runs")
    with pytest.raises(LegoError, match="is not a shape"):
        kernels.transpose(None, 0)
