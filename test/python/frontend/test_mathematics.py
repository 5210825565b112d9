"""Functions of elements inside kernels, run in the simulator against NumPy in double precision."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

COUNT = 2048
LINE = lg.OrderBy(lg.Row(COUNT)).TileBy([COUNT // 128], [128])
NUMBER: Any = 1.5
SPECIAL = (0.0, 1e-8, -1e-8, 0.6, -0.6, 0.5999999, 20.0, -20.0, 88.0, -100.0)


def inputs() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Random numbers, small and large, and some at which functions change their form."""
    x = np.random.default_rng(7).standard_normal(COUNT) * np.geomspace(1e-3, 30, COUNT)
    x[: len(SPECIAL)] = SPECIAL
    return x.astype(np.float32)


def computed(function: Any, x: Any) -> Any:
    """What a kernel makes of numbers, each by a thread."""

    def kernel(a: Any, b: Any) -> None:
        at = lg.block_id(), lg.thread_id()
        b[at] = function(a[at])

    kind = lg.TensorType("f32", LINE)
    y = np.full_like(x, np.nan)
    parameters = {"a": kind, "b": kind}
    lg.kernel(grid=COUNT // 128, block=128, parameters=parameters)(kernel)(x, y, device="sim")
    return y.astype(np.float64)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    ("function", "reference", "relative", "absolute"),
    [
        (lg.exp2, np.exp2, 2**-21, 0.0),
        (lg.tanh, np.tanh, 3e-7, 0.0),
        (lg.gelu, gelu, 1e-6, 1e-6),
        (lg.relu, lambda x: np.maximum(x, 0), 0.0, 0.0),
        (lambda x: lg.maximum(x, -0.5), lambda x: np.maximum(x, -0.5), 0.0, 0.0),
        (lambda x: lg.minimum(1.5, x), lambda x: np.minimum(1.5, x), 0.0, 0.0),
        (lambda x: lg.minimum(x, x * x), lambda x: np.minimum(x, x * x), 2**-23, 0.0),
    ],
    ids=["exp2", "tanh", "gelu", "relu", "maximum", "minimum", "minimum of two"],
)
def test_results_are_within_the_documented_error(
    function: Any, reference: Any, relative: float, absolute: float
) -> None:
    x = inputs()
    want = reference(x.astype(np.float64))
    finite = np.abs(want) < np.finfo(np.float32).max
    error = np.abs(computed(function, x) - want)[finite]
    assert (error <= relative * np.abs(want[finite]) + absolute + 2.0**-126).all()


def test_what_is_no_number_stays_none() -> None:
    x = inputs()
    x[:3] = np.nan, np.inf, -np.inf
    for function in (lg.exp2, lg.tanh, lg.relu):
        assert np.isnan(computed(function, x)[0])
    assert computed(lg.tanh, x)[1:3].tolist() == [1.0, -1.0]
    assert computed(lg.exp2, x)[1:3].tolist() == [np.inf, 0.0]


def test_integers_have_extremes_too() -> None:
    def kernel(a: Any) -> None:
        for i in lg.loop(8):
            a[0, i] = lg.maximum(2, lg.minimum(i, 5)).to("f32")

    x = np.zeros((1, 8), np.float32)
    layout = lg.OrderBy(lg.Row(1, 8))
    traced = lg.kernel(grid=1, block=1, parameters={"a": lg.TensorType("f32", layout)})(kernel)
    traced(x, device="sim")
    assert x[0].tolist() == [2, 2, 2, 3, 4, 5, 5, 5]


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda _a: lg.exp2(NUMBER), "'exp2' is for kernel values of floating point, not 1.5"),
        (lambda _a: lg.tanh(lg.thread_id()), "'tanh' is for .* not index"),
    ],
)
def test_wrong_elementwise_operations_are_errors(use: Any, says: str) -> None:
    def kernel(a: Any) -> None:
        use(a)

    kind = lg.TensorType("f32", LINE)
    with pytest.raises(LegoError, match=says):
        _ = lg.kernel(grid=1, block=1, parameters={"a": kind})(kernel).module


def test_outside_of_kernels_extremes_are_numbers_and_arrays() -> None:
    assert lg.maximum(2, 3) == 3
    assert lg.minimum(np.arange(3), 1).tolist() == [0, 1, 1]
    with pytest.raises(LegoError, match="tanh works only inside a kernel"):
        lg.tanh(NUMBER)
