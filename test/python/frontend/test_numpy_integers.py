"""NumPy's integers are numbers like Python's wherever a size, an index or a count is needed."""

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import kernels
from lego_mlir.index.integers import python_integers, takes_numpy_integers

ONE, TWO, FOUR, EIGHT = np.int64(1), np.uint8(2), np.int32(4), np.int16(8)
LAYOUT = lg.OrderBy(lg.Row(FOUR, EIGHT))
SQUARE = lg.Tensor["f32", (EIGHT, EIGHT), FOUR]
LINES = lg.Tensor["f32", LAYOUT]
LINE = lg.Tensor["f32", "M"]


def test_kernels_on_tiles() -> None:
    @lg.kernel(grid=(ONE, ONE), warps=ONE, cluster=ONE, ctas_per_sm=ONE, tile_multiple=EIGHT)
    def fill(x: SQUARE) -> None:
        tiles = x.tile(FOUR, EIGHT)
        for i in lg.loop(TWO):
            tile = lg.full((FOUR, EIGHT), np.float64(2), "f32")
            tiles[i, np.int64(0)] = tile.reshape(EIGHT, FOUR).reshape((FOUR, EIGHT))

        @lg.fold(FOUR, np.float32(1))
        def total(_: Any, total: Any) -> Any:
            return total + TWO

        x[ONE, TWO] = total + lg.sum(lg.arange(EIGHT), axis=np.int64(0)).to("f32")

    x = np.zeros((8, 8), np.float32)
    fill(x)
    expected = np.full_like(x, 2)
    expected[1, 2] = 1 + 4 * 2 + 28
    assert (x == expected).all()


def test_kernels_of_threads() -> None:
    @lg.kernel(grid=lambda x: x.shape[0] * ONE, block=np.int64(32))
    def fill(x: LINES) -> None:
        i, j = LAYOUT.inv(lg.thread_id() * ONE)
        x[i, j] = np.float32(3)

    x = np.zeros((4, 8), np.float32)
    fill(x)
    assert (x == 3).all()


def test_sizes_of_a_run() -> None:
    @lg.kernel(grid=lambda x: lg.ceildiv(x.shape[0], FOUR), warps=1)
    def fill(x: LINE) -> None:
        x.tile(FOUR)[lg.block_id()] = lg.full((FOUR,), 1.0, "f32")

    assert (fill.run(sizes={"M": np.int64(6)}).outputs["x"] == 1).all()


def test_ready_made_kernels() -> None:
    x = np.random.default_rng(0).random((4, 8), np.float32)
    y = np.empty((8, 4), np.float32)
    kernels.permute(np.array([4, 8]), (ONE, 0))(x, y)
    assert (y == x.T).all()
    kernels.softmax(FOUR, columns=EIGHT)(x, y := np.empty_like(x))
    np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-5)


def test_what_is_no_integer_stays() -> None:
    given = [True, np.bool_(True), 1.0, np.float32(1), "1", None, (1, [TWO], {"a": ONE})]
    *same, inside = python_integers(given)
    assert all(x is y for x, y in zip(same, given, strict=False))
    assert inside == (1, [2], {"a": 1})
    assert type(inside[2]["a"]) is int


def test_the_signature_stays() -> None:
    def function(a: int, *, b: int) -> tuple[type, type]:
        """Say what it gets."""
        return type(a), type(b)

    taking = takes_numpy_integers(function)
    assert taking.__doc__ == function.__doc__
    assert taking(TWO, b=ONE) == (int, int)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'b'"):
        taking(1)  # type: ignore[call-arg]
