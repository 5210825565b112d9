"""Several takes from one tile: it is stored once in shared memory, where all of them load."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg

SIZE = 512


def of(kernel: Any) -> Any:
    types = {name: lg.TensorType("i32", lg.OrderBy(lg.Row(SIZE))) for name in ("x", "at", "y")}
    return lg.kernel(grid=1, warps=4, parameters=types)(kernel)


def stores(kernel: Any) -> int:
    return len(re.findall(r"st\.shared", kernel.compile("sm_90a").ptx))


def arrays(seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, SIZE, SIZE).astype(np.int32)
    at = rng.integers(0, SIZE, SIZE).astype(np.int32)
    return x, at, np.full(SIZE, -1, np.int32)


@pytest.mark.parametrize("count", [2, 5])
def test_a_chain_of_takes_stores_the_tile_once(count: int) -> None:
    def once(x: Any, at: Any, y: Any) -> None:
        y.tile(SIZE)[0] = lg.take(x.tile(SIZE)[0], at.tile(SIZE)[0], 0)

    def chain(x: Any, at: Any, y: Any) -> None:
        tile, found = x.tile(SIZE)[0], at.tile(SIZE)[0]
        for _ in range(count):
            found = lg.take(tile, found, 0)
        y.tile(SIZE)[0] = found

    assert stores(of(chain)) == stores(of(once)) > 0
    x, at, y = arrays(count)
    of(chain)(x, at, y, device="sim")
    for _ in range(count):
        at = x[at]
    np.testing.assert_array_equal(y, at)


def test_takes_of_different_tiles_do_not_meet() -> None:
    def kernel(x: Any, at: Any, y: Any) -> None:
        tile, index = x.tile(SIZE)[0], at.tile(SIZE)[0]
        first = lg.take(tile, index, 0)
        second = lg.take(first, index, 0)
        y.tile(SIZE)[0] = second * SIZE + lg.take(tile, second, 0)

    x, at, y = arrays(7)
    of(kernel)(x, at, y, device="sim")
    second = x[at][at]
    np.testing.assert_array_equal(y, second * SIZE + x[second])


def test_takes_in_a_loop_and_behind_it() -> None:
    """A block stores what its own takes need: one of a loop may not come, one behind it does."""

    def kernel(x: Any, at: Any, y: Any) -> None:
        tile = x.tile(SIZE)[0]

        @lg.fold(3, at.tile(SIZE)[0])
        def found(_: Any, index: Any) -> Any:
            return lg.take(tile, lg.take(tile, index, 0), 0)

        y.tile(SIZE)[0] = lg.take(tile, found, 0)

    x, at, y = arrays(8)
    of(kernel)(x, at, y, device="sim")
    for _ in range(7):
        at = x[at]
    np.testing.assert_array_equal(y, at)


def test_a_tile_that_a_loop_changes_is_stored_again() -> None:
    def kernel(x: Any, at: Any, y: Any) -> None:
        index = at.tile(SIZE)[0]

        @lg.fold(4, x.tile(SIZE)[0])
        def found(_: Any, tile: Any) -> Any:
            return lg.take(tile, index, 0) + 1

        y.tile(SIZE)[0] = found

    x, at, y = arrays(9)
    of(kernel)(x, at, y, device="sim")
    for _ in range(4):
        x = x[at] + 1
    np.testing.assert_array_equal(y, x)
