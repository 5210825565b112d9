"""Functions of mathematics in f32: errors in units in the last place, and special values.

The simulator rounds approximate instructions to nearest; a GPU adds what the PTX ISA says of them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf, inf, nan
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg

COUNT = 1024
LINE = lg.Tensor["f32", (COUNT,)]
RNG = np.random.default_rng(11)

WIDE = [0.0, -0.0, inf, -inf, nan, 88.0, 90.0, -104.0, 1e-40, 127.5, -149.5]
POSITIVE = [0.0, -0.0, -1.0, inf, -inf, nan, 1.0, 2.0, 1e-40, 3e38]

Function = Callable[..., Any]


def computed(function: Function, *inputs: Any, exact: bool) -> Any:
    def body(a: Any, b: Any, out: Any) -> None:
        i = lg.block_id() * 128 + lg.thread_id()
        out[i] = function(a[i], b[i])

    kernel = lg.kernel(
        grid=COUNT // 128,
        block=128,
        parameters=dict.fromkeys(("a", "b", "out"), LINE),
        exact_math=exact,
    )(body)
    out = np.zeros(COUNT, np.float32)
    kernel(inputs[0], inputs[-1], out, device="sim", check=False)
    return out


def units(found: Any, expected: Any) -> Any:
    """Return the errors in units in the last place; those of special values are 0 or infinite."""
    with np.errstate(all="ignore"):
        near = expected.astype(np.float32)
        same = (found == near) | (np.isnan(found) & np.isnan(near))
        unit = np.spacing(np.maximum(np.abs(near), np.float32(2**-126))).astype(np.float64)
        away = np.abs(found.astype(np.float64) - expected) / unit
        return np.where(same, 0, np.where(np.isfinite(away), away, inf))


def numbers(special: list[float], *ranges: tuple[float, float], log: bool = False) -> Any:
    count = (COUNT - len(special)) // len(ranges)
    parts = [RNG.uniform(*r, count) for r in ranges]
    parts = [np.exp(p) for p in parts] if log else parts
    rest = COUNT - count * len(ranges) - len(special)
    return np.concatenate([*parts, special, np.ones(rest)]).astype(np.float32)


ANY = numbers(WIDE, (-87, 88), (-1, 1))
ANGLES = numbers([0.0, -0.0, inf, -inf, nan, 1e-30], (-4, 4), (-1e4, 1e4))
OF_LOG = numbers(POSITIVE, (-87, 88), (-0.7, 0.7), log=True)

# The function, its reference, inputs, the error in units with exact mathematics, and without.
CASES: list[tuple[str, Function, Any, float, float]] = [
    ("exp", np.exp, ANY, 1.5, 70),
    ("exp2", np.exp2, ANY, 0.5, 0.5),
    ("log", np.log, OF_LOG, 1.5, 2),
    ("log2", np.log2, OF_LOG, 1.5, 1),
    ("sqrt", np.sqrt, OF_LOG, 0.5, 1),
    ("rsqrt", lambda x: 1 / np.sqrt(x), OF_LOG, 1, 1),
    ("erf", np.vectorize(erf), ANY, 1.5, 1.5),
    ("tanh", np.tanh, ANY, 2, 2),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), ANY, 3, 70),
    ("softplus", lambda x: np.logaddexp(0, x), ANY, 4, 70),
    ("floor", np.floor, ANGLES, 0, 0),
    ("ceil", np.ceil, ANGLES, 0, 0),
    ("round", np.round, ANGLES, 0, 0),
    ("abs", np.abs, ANY, 0, 0),
]


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "fast"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_errors_in_units_in_the_last_place(case: Any, exact: bool) -> None:
    name, reference, x, most, most_fast = case
    found = computed(lambda a, _: getattr(lg, name)(a), x, exact=exact)
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.float64))
    errors = units(found, expected)
    if not exact:  # numbers that are not normal are 0
        errors[(np.abs(expected) < 2.0**-126) & (found == 0)] = 0
    worst = int(np.argmax(errors))
    assert errors[worst] <= (most if exact else most_fast), (x[worst], found[worst])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sines_are_absolute(name: str) -> None:
    found = computed(lambda a, _: getattr(lg, name)(a), ANGLES, exact=False)
    with np.errstate(invalid="ignore"):
        expected = getattr(np, name)(ANGLES.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-7)


POWERS = [
    (-2, 3), (-2, 2), (-8, 1 / 3), (0, 0), (0, -1), (-0.0, 3), (-0.0, -3), (inf, 2), (-inf, 3),
    (-inf, 0.5), (1, nan), (nan, 0), (nan, 1), (-1, inf), (-1, 2.5), (2, 200), (0.5, 200),
    (3, -200), (2, -149), (2, inf), (0.5, inf), (0, inf), (-1, -inf), (1e-40, 2), (1e-40, -0.5),
]  # fmt: skip


@pytest.mark.parametrize(("exact", "most"), [(True, 2), (False, 150)])
def test_powers(exact: bool, most: float) -> None:
    special = np.array(POWERS, np.float32)
    x = np.exp(RNG.uniform(-5, 5, COUNT)).astype(np.float32)
    y = RNG.uniform(-15, 15, COUNT).astype(np.float32)
    x[: len(special)], y[: len(special)] = special.T
    found = computed(lg.pow, x, y, exact=exact)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
    errors = units(found, expected)
    assert errors.max() <= most, (x[errors.argmax()], y[errors.argmax()])


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_short_floats_are_computed_in_f32(dtype: str) -> None:
    """exp of f16 is within half a unit of f16 and what f32 loses, not what f16 arithmetic does."""

    def body(a: Any, out: Any) -> None:
        i = lg.thread_id()
        out[i] = (lg.exp(a[i].to(dtype)) * 1).to("f32")

    line = lg.Tensor["f32", (128,)]
    x = RNG.uniform(-8, 8, 128).astype(np.float16).astype(np.float32)
    x = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)  # also of bf16
    out = np.zeros_like(x)
    lg.kernel(grid=1, block=128, parameters={"a": line, "out": line})(body)(x, out, device="sim")
    digits = 11 if dtype == "f16" else 8
    assert (np.abs(out / np.exp(x.astype(np.float64)) - 1) <= 1.01 * 2.0**-digits).all()


def test_a_type_without_code_is_an_error() -> None:
    line = lg.Tensor["f64", (32,)]

    def body(a: Any) -> None:
        a[lg.thread_id()] = lg.sin(a[lg.thread_id()])

    kernel = lg.kernel(grid=1, block=32, parameters={"a": line})(body)
    with pytest.raises(lg.LegoError, match="'__nv_sin' of mathematics, which there is no code for"):
        kernel.compilation().text("ptx")
