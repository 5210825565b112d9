"""Divisions: how near and how exact on demand, without a call on Hopper, and of integers by 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.kernels import matmul

COUNT = 256
LINE = lg.OrderBy(lg.Row(COUNT // 4, 4))
PER_ROW = {"row": lg.Tensor["f32", lg.OrderBy(lg.Row(256))]}


def divider(dtype: str, divide: Any, **options: Any) -> Any:
    def kernel(a: Any, b: Any) -> None:
        i = lg.thread_id()
        b[i, :] = divide(a[i, :], b[i, :])

    parameters = {name: lg.TensorType(dtype, LINE) for name in "ab"}
    return lg.kernel(grid=1, block=COUNT // 4, parameters=parameters, **options)(kernel)


def numbers(dtype: Any) -> tuple[Any, Any]:
    """Dividends and divisors that differ much in their exponents, with zeros and infinities."""
    random = np.random.default_rng(3)
    x, y = random.standard_normal((2, COUNT // 4, 4)) * np.exp2(random.integers(-9, 9, 4))
    x[:3, 0], y[1:5, 0] = (0.0, 1.0, np.inf), (0.0, np.inf, 0.0, -0.0)
    return x.astype(dtype), y.astype(dtype)


@pytest.mark.parametrize(("dtype", "of"), [("f32", np.float32), ("f16", np.float16)])
@pytest.mark.parametrize("exact", [False, True])
def test_vectors_are_divided_by_elements(dtype: str, of: Any, exact: bool) -> None:
    kernel = divider(dtype, lambda x, y: x / y, exact_math=exact)
    ptx = kernel.compilation().text("ptx")
    assert ptx.count("div.rn.f32" if exact else "div.full.f32") == 4
    assert ("div.full" in ptx) == (not exact)
    x, y = numbers(of)
    with np.errstate(all="ignore"):
        want = x / y
    kernel(x, y, device="sim")
    np.testing.assert_allclose(y, want, rtol=2 * np.finfo(of).eps)


def test_a_divisor_whose_reciprocal_is_exact_multiplies() -> None:
    ptx = divider("f32", lambda x, y: x / 8 + y / -0.25).compilation().text("ptx")
    assert "div." not in ptx
    assert "div.full" in divider("f32", lambda x, y: x / 2.0**-127).compilation().text("ptx")


def test_double_precision_stays_exact() -> None:
    ptx = divider("f64", lambda x, y: x / y).compilation().text("ptx")
    assert ptx.count("div.rn.f64") == 4


EPILOGUES: dict[str, Any] = {
    "constant": (lambda x: x / 3.0, {}),
    "row": (lambda x, row: x / row, PER_ROW),
    "reciprocal": (lambda x: 1.0 / (x + 2.0), {}),
    "f16": (lambda x: x.to("f16") / 3.0, {}),
    "functions": (lambda x: lg.gelu(x) / lg.tanh(lg.exp2(x)), {}),
}


@pytest.mark.parametrize("name", EPILOGUES)
def test_a_division_in_the_epilogue_calls_nothing(name: str) -> None:
    """A call would have `wgmma` carried out one at a time (C7509); the kernel is strict."""
    epilogue, operands = EPILOGUES[name]
    kernel = matmul(256, 256, 128, epilogue=epilogue, operands=operands, target="sm_90a")
    assert kernel.strict
    compilation = kernel.compilation()
    assert "wgmma.mma_async" in compilation.ptx
    assert not [w for w in compilation.cubin.warnings if "(C75" in w]


def test_a_routine_in_the_epilogue_does_not_slow_wgmma_down() -> None:
    """The assembler that would call it is not the one that is used."""

    def double(x: Any) -> Any:
        return (x.to("f64") / 3.0).to("f32")

    kernel = matmul(256, 256, 128, epilogue=double, target="sm_90a", schedule="persistent")
    compilation = kernel.compilation()
    assert "wgmma.mma_async" in compilation.ptx
    assert not [w for w in compilation.cubin.warnings if "(C75" in w]


@pytest.mark.parametrize("dtype", ["i8", "i32", "u16", "u64"])
@pytest.mark.parametrize("on_tiles", [False, True])
def test_a_division_by_zero_is_not_taken_for_one_that_never_happens(
    dtype: str, on_tiles: bool
) -> None:
    """Conditions on divisors hold, those of where and those of tiles past the end of a tensor."""
    size = 100
    line = lg.Tensor[dtype, (size,)]

    def kernel(x: Any, y: Any, quotients: Any, remainders: Any) -> None:
        if on_tiles:
            i = lg.block_id()
            x, y, quotients, remainders = (t.tile(32) for t in (x, y, quotients, remainders))
        else:
            i = lg.thread_id()
        a, b = x[i], y[i]
        quotients[i] = lg.where(b != 0, a // b, 5)
        remainders[i] = lg.where(b != 0, a % b, 5)

    options: dict[str, Any] = (
        {"grid": -(-size // 32), "warps": 1} if on_tiles else {"grid": 1, "block": size}
    )
    options["parameters"] = dict.fromkeys(("x", "y", "quotients", "remainders"), line)
    of = np.dtype(dtype.replace("i", "int").replace("u", "uint"))
    x = np.random.default_rng(1).integers(0, 100, size).astype(of)
    y = (np.arange(size) % 5 - (2 if of.kind == "i" else 0)).astype(of)
    x[1::5] = np.iinfo(of).min  # some by -1, which is itself
    quotients, remainders = np.empty_like(x), np.empty_like(x)
    lg.kernel(**options)(kernel)(x, y, quotients, remainders, device="sim")
    divisors = np.where(y == 0, of.type(1), y)
    with np.errstate(over="ignore"):
        assert (quotients == np.where(y != 0, x // divisors, 5)).all()
        assert (remainders == np.where(y != 0, x % divisors, 5)).all()
