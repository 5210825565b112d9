"""The swizzling modes, against the simulator's and the named permutation."""

from __future__ import annotations

import numpy as np
import pytest

from lego_mlir.algebra import GenP, OrderBy, tma_swizzle
from lego_mlir.hardware.swizzle import MODES, alignment, swizzled
from lego_mlir.sim.machine import tensor_map

ADDRESSES = np.arange(4096)


@pytest.mark.parametrize("mode", MODES)
def test_as_the_simulator_has_it(mode: int) -> None:
    name = f"{mode}B" if mode else "none"
    expected = tensor_map.swizzled(ADDRESSES.astype(np.uint64), name)
    np.testing.assert_array_equal(swizzled(ADDRESSES, mode), expected)


@pytest.mark.parametrize("mode", MODES)
def test_undoes_itself_and_keeps_chunks_and_lines(mode: int) -> None:
    there = swizzled(ADDRESSES, mode)
    np.testing.assert_array_equal(swizzled(there, mode), ADDRESSES)
    np.testing.assert_array_equal(there % 16, ADDRESSES % 16)
    np.testing.assert_array_equal(there // 128, ADDRESSES // 128)


@pytest.mark.parametrize("mode", MODES)
def test_begins_anew_where_tiles_are_aligned(mode: int) -> None:
    period = alignment(mode)
    np.testing.assert_array_equal(
        swizzled(ADDRESSES + period, mode), swizzled(ADDRESSES, mode) + period
    )


@pytest.mark.parametrize(("mode", "expected"), [(128, 1024), (64, 512), (32, 256), (0, 128)])
def test_alignment(mode: int, expected: int) -> None:
    assert alignment(mode) == expected


@pytest.mark.parametrize("mode", [32, 64, 128])
@pytest.mark.parametrize("element", [1, 2, 4])
def test_the_named_permutation_is_this_one(mode: int, element: int) -> None:
    columns = mode // element
    layout = OrderBy(GenP([16, columns], tma_swizzle(mode, element)))
    rows, column = np.indices((16, columns))
    expected = swizzled((rows * columns + column) * element, mode)
    np.testing.assert_array_equal(layout.apply(rows, column) * element, expected)
