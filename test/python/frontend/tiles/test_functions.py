"""Operators, functions, reductions and scans of tiles against NumPy, interpreted and simulated."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from test.support.tile_programs import both, interpreted, program

RNG = np.random.default_rng(5)
F_32x8 = lg.Tensor["f32", (32, 8)]
ERF = np.vectorize(erf, otypes=[np.float32])


def floats(*shape: int, dtype: Any = np.float32) -> Any:
    signs = np.where(RNG.random(shape) < 0.5, 1, -1)
    return (RNG.uniform(0.1, 3, shape) * signs).astype(dtype)


def integers(*shape: int, dtype: Any = np.int32) -> Any:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def check(function: Callable[..., Any], reference: Callable[..., Any], *inputs: Any) -> None:
    """Compare by the interpreter; that the code computes the same is tested for each operation."""
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(*inputs))
    out = np.zeros(expected.shape or (1,), expected.dtype)
    found = interpreted(program(function, list(inputs), out), out, *inputs)
    floating = expected.dtype.kind == "f"
    close = 2e-3 if expected.dtype == np.float16 else 1e-5
    tolerance = {"rtol": close, "atol": close} if floating else {"rtol": 0}
    np.testing.assert_allclose(found.reshape(expected.shape), expected, **tolerance)


OPERATORS: list[tuple[str, Callable[..., Any]]] = [
    ("+", lambda x, y: x + y),
    ("-", lambda x, y: x - y),
    ("*", lambda x, y: x * y),
    ("1-x", lambda x, y: 1 - x),
    ("-x", lambda x, y: -x),
]
COMPARISONS: list[tuple[str, Callable[..., Any]]] = [
    ("==", lambda x, y: x == y),
    ("!=", lambda x, y: x != y),
    ("<", lambda x, y: x < y),
    ("<=", lambda x, y: x <= y),
    (">", lambda x, y: x > y),
    (">=", lambda x, y: x >= y),
]
OF_INTEGERS: list[tuple[str, Callable[..., Any]]] = [
    ("&", lambda x, y: x & y),
    ("|", lambda x, y: x | y),
    ("^", lambda x, y: x ^ y),
    ("~", lambda x, y: ~x),
    ("<<", lambda x, y: x << 3),
    (">>", lambda x, y: x >> 3),
    ("//", lambda x, y: x // 7),
    ("%", lambda x, y: x % 7),
]
TYPES = [np.float32, np.float16, np.int32, np.uint32, np.int8, np.uint8, np.int64, np.uint16]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda o: o[0])
def test_arithmetic(operator: Any, dtype: Any) -> None:
    make = integers if np.dtype(dtype).kind in "iu" else floats
    check(operator[1], operator[1], make(60, dtype=dtype), make(60, dtype=dtype))


@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("operator", COMPARISONS, ids=lambda o: o[0])
def test_comparisons(operator: Any, dtype: Any) -> None:
    x = integers(60, dtype=dtype) if np.dtype(dtype).kind in "iu" else floats(60, dtype=dtype)
    y = np.where(np.arange(60) % 3 == 0, x, x[::-1])
    check(
        lambda x, y: operator[1](x, y).to("i32"),
        lambda x, y: operator[1](x, y).astype(np.int32),
        x,
        y,
    )


@pytest.mark.parametrize("dtype", [d for d in TYPES if np.dtype(d).kind in "iu"])
@pytest.mark.parametrize("operator", OF_INTEGERS, ids=lambda o: o[0])
def test_operators_of_integers(operator: Any, dtype: Any) -> None:
    x, y = integers(60, dtype=dtype), integers(60, dtype=dtype)
    check(operator[1], lambda x, y: np.asarray(operator[1](x, y)).astype(dtype), x, y)


@pytest.mark.parametrize("source", TYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("target", TYPES, ids=lambda d: d.__name__)
def test_conversions(source: Any, target: Any) -> None:
    names = {"float32": "f32", "float16": "f16"}
    name = np.dtype(target).name
    name = names.get(name, name.replace("uint", "u").replace("int", "i"))
    x = RNG.integers(0, 100, 40).astype(source)
    if np.dtype(source).kind == "i" and np.dtype(target).kind != "u":
        x = -x
    check(lambda x: x.to(name), lambda x: x.astype(target), x)


FUNCTIONS: list[tuple[str, Callable[..., Any]]] = [
    ("exp", np.exp),
    ("exp2", np.exp2),
    ("sin", np.sin),
    ("cos", np.cos),
    ("erf", ERF),
    ("tanh", np.tanh),
    ("abs", np.abs),
    ("floor", np.floor),
    ("ceil", np.ceil),
    ("round", np.round),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    ("silu", lambda x: x / (1 + np.exp(-x))),
    ("softplus", lambda x: np.logaddexp(0, x)),
    ("relu", lambda x: np.maximum(x, 0)),
]
OF_POSITIVE: list[tuple[str, Callable[..., Any]]] = [
    ("log", np.log),
    ("log2", np.log2),
    ("sqrt", np.sqrt),
    ("rsqrt", lambda x: 1 / np.sqrt(x)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("function", FUNCTIONS + OF_POSITIVE, ids=lambda f: f[0])
def test_mathematics(function: Any, dtype: Any) -> None:
    name, reference = function
    x = floats(100, dtype=dtype)
    x = np.abs(x) if function in OF_POSITIVE else x

    def rounded(x: Any) -> Any:
        return reference(x.astype(np.float32)).astype(dtype)

    check(getattr(lg, name), rounded, x)


def test_functions_of_several_values() -> None:
    x, y, z = floats(100), floats(100), floats(100)
    check(lambda x, y: lg.pow(lg.abs(x), y), lambda x, y: np.abs(x) ** y, x, y)
    check(lg.fma, lambda x, y, z: x * y + z, x, y, z)
    check(lambda x: lg.clamp(x, -1, 0.5), lambda x: np.clip(x, -1, 0.5), x)
    check(lg.maximum, np.maximum, x, y)
    check(
        lambda x, y: lg.minimum(x, lg.minimum(y, 1)),
        lambda x, y: np.minimum(x, np.minimum(y, 1)),
        x,
        y,
    )
    check(lambda x, y: lg.where(x > y, x, 0.0), lambda x, y: np.where(x > y, x, 0), x, y)


REDUCTIONS: list[tuple[str, Callable[..., Any]]] = [
    (name, getattr(np, name)) for name in ("sum", "prod", "max", "min", "argmax", "argmin")
]
AXES: list[Any] = [None, 0, 1, -1, (0, 1)]


@pytest.mark.parametrize("shape", [(16, 32), (5, 37)], ids=str)
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("function", REDUCTIONS, ids=lambda f: f[0])
def test_reductions(function: Any, axis: Any, shape: tuple[int, ...]) -> None:
    """Sizes that are rounded up leave no trace: negative numbers have a negative maximum."""
    name, reference = function
    if name.startswith("arg") and axis == (0, 1):
        axis = None
    for x in (-np.abs(floats(*shape)) * 0.9, integers(*shape), integers(*shape, dtype=np.uint8)):
        for keepdims in (False, True):
            if keepdims and axis is None and name.startswith("arg"):
                continue

            def expected(x: Any, keepdims: bool = keepdims) -> Any:
                found = reference(x, axis=axis, keepdims=keepdims)
                return found.astype(np.int32 if name.startswith("arg") else x.dtype)

            check(lambda x, k=keepdims: getattr(lg, name)(x, axis, keepdims=k), expected, x)


def test_reductions_of_truths() -> None:
    x = integers(6, 20) % 3
    for axis in (None, 0, 1):
        for ours, numpys in ((lg.any, np.any), (lg.all, np.all)):
            check(
                lambda x, f=ours, a=axis: f(x == 0, a).to("i32"),
                lambda x, f=numpys, a=axis: f(x == 0, axis=a).astype(np.int32),
                x,
            )
        check(
            lambda x, a=axis: lg.sum(x == 0, a),
            lambda x, a=axis: (x == 0).sum(axis=a).astype(np.int32),
            x,
        )


def test_nan_is_the_extreme_and_comes_first() -> None:
    x = floats(4, 40)
    x[1, 7] = x[1, 30] = x[3, 0] = np.nan
    for name in ("max", "min"):
        check(
            lambda x, n=name: getattr(lg, n)(x, 1), lambda x, n=name: getattr(np, n)(x, axis=1), x
        )
    for name in ("argmax", "argmin"):
        check(
            lambda x, n=name: getattr(lg, n)(x, 1),
            lambda x, n=name: getattr(np, n)(x, axis=1).astype(np.int32),
            x,
        )


def test_sums_of_f16_are_computed_in_f32() -> None:
    x = np.full(4096, 0.1, np.float16)
    check(lg.sum, lambda x: x.astype(np.float32).sum().astype(np.float16), x)
    check(lg.cumsum, lambda x: np.cumsum(x.astype(np.float32)).astype(np.float16), x)


def test_reductions_by_a_function() -> None:
    x, y = floats(6, 50), floats(6, 50)
    biggest = lambda a, b: lg.maximum(lg.abs(a), lg.abs(b))  # noqa: E731
    check(
        lambda x: lg.reduce(biggest, x, 1, identity=0.0),
        lambda x: np.abs(x).max(axis=1),
        x,
    )

    def complex_product(p: Any, q: Any) -> Any:
        return p[0] * q[0] - p[1] * q[1], p[0] * q[1] + p[1] * q[0]

    check(
        lambda x, y: lg.reduce(complex_product, (x, y), 1, identity=(1.0, 0.0))[1],
        lambda x, y: np.prod(x + 1j * y, axis=1).imag.astype(np.float32),
        x * 0.4,
        y * 0.4,
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse: bool) -> None:
    def flipped(scan: Any) -> Any:
        if not reverse:
            return lambda x: scan(x, axis=1)
        return lambda x: scan(x[:, ::-1], axis=1)[:, ::-1]

    x = floats(3, 37) * 0.7
    pairs = [
        (lg.cumsum, np.cumsum),
        (lg.cumprod, np.cumprod),
        (lg.cummax, np.maximum.accumulate),
        (lg.cummin, np.minimum.accumulate),
    ]
    for ours, numpys in pairs:
        check(lambda x, f=ours: f(x, 1, reverse=reverse), flipped(numpys), x)
    check(
        lambda x: lg.scan(lambda a, b: a + b, x, 1, identity=0.0, reverse=reverse),
        flipped(np.cumsum),
        x,
    )


def test_shapes() -> None:
    x, row = floats(8, 32), floats(32)
    check(lambda x: x.T, lambda x: x.T, x)
    check(lambda x: x.reshape(16, 16), lambda x: x.reshape(16, 16), x)
    check(lambda x: x[:, None, :], lambda x: x[:, None, :], x)
    check(lambda x, r: x * r, lambda x, r: x * r, x, row)
    check(lambda x, r: x + r[None, :] * 2, lambda x, r: x + r * 2, x, row)
    check(lambda x: x - lg.sum(x, 0), lambda x: x - x.sum(axis=0), x)
    check(
        lambda x: lg.broadcast_to(lg.sum(x, 0), (4, 32)),
        lambda x: np.broadcast_to(x.sum(axis=0), (4, 32)),
        x,
    )
    check(lambda x: lg.join(x, -x), lambda x: np.stack([x, -x], axis=-1), x)
    check(lambda x: lg.split(lg.join(x, -x))[1], lambda x: -x, x)
    order = RNG.permuted(np.tile(np.arange(32, dtype=np.int32), (8, 1)), axis=1)
    check(lambda x, i: lg.take(x, i, 1), lambda x, i: np.take_along_axis(x, i, 1), x, order)
    check(
        lambda x: x + lg.iota((8, 32), 0).to("f32"),
        lambda x: x + np.arange(8)[:, None].astype("f4"),
        x,
    )
    check(lambda x: x + lg.full((8, 1), 2, "f32"), lambda x: x + 2, x)
    check(lambda x: lg.zeros_like(x), np.zeros_like, x)


def test_sizes_that_are_rounded_up() -> None:
    """What is created in such a size ends where it should."""
    x = floats(300)
    check(lambda x: lg.sum(lg.arange(300)), lambda x: np.int32(300 * 299 // 2), x)
    check(lambda x: lg.sum(lg.full((7, 50), 2, "i32"), 1), lambda x: np.full(7, 100, np.int32), x)
    check(lambda x: lg.max(lg.restrict(x, lg.arange(300) < 10)), lambda x: x[:10].max(), x)

    check(
        lambda x: lg.sum(lg.fill(lg.restrict(x, lg.arange(300) < 10), 2.0)),
        lambda x: x[:10].sum() + np.float32(2 * 290),
        x,
    )


def test_matrix_multiplication() -> None:
    a, b = floats(16, 32, dtype=np.float16), floats(32, 24, dtype=np.float16)
    wide = a.astype(np.float32) @ b.astype(np.float32)
    check(lambda a, b: lg.dot(a, b), lambda a, b: wide, a, b)
    check(lambda a, b: lg.dot(a, b, lg.full((16, 24), 1, "f32")), lambda a, b: wide + 1, a, b)


def test_what_the_compiler_makes_is_the_same() -> None:
    """One program with many functions, through the code that is emitted."""
    x, y = floats(5, 300), floats(300)

    def mixed(x: Any, y: Any) -> Any:
        z = lg.where(x > y, lg.exp(x) / lg.sqrt(lg.abs(y)), lg.sigmoid(x) * lg.erf(y))
        place = lg.argmax(z, 1)[:, None].to("f32")
        spread = lg.max(z, 1, keepdims=True) - lg.min(z, 1, keepdims=True)
        return lg.cumsum(z, 1) * lg.softplus(spread) + place

    both(mixed, [x, y], np.zeros((5, 300), np.float32))
    u = integers(5, 40, dtype=np.uint8)
    both(
        lambda u: lg.max((u >> 1) // 3 + (~u & 7), 1, keepdims=True).to("u32") * u.to("u32"),
        [u],
        np.zeros((5, 40), np.uint32),
    )


def test_a_layout_of_ones_own() -> None:
    x = floats(16, 8)
    text = "OrderBy(Row(1, 32, 4)).OrderBy(RegP([2, 8, 4, 2], [1, 2, 0, 3])).GroupBy([16, 8])"
    both(lambda x: lg.convert(x, text) * 2, [x], np.zeros_like(x), warps=1)


def test_tiles_are_loaded_in_a_layout_of_ones_own() -> None:
    """The layout is that of the accumulator of `mma.m16n8`: a thread reads 8 bytes at a time."""
    text = "OrderBy(Row(1, 32, 4)).OrderBy(RegP([2, 8, 4, 2], [1, 2, 0, 3])).GroupBy([16, 8])"

    @lg.kernel(grid=2, warps=1)
    def doubled(x: F_32x8, y: F_32x8) -> None:
        y.tile(16, 8)[lg.block_id(), 0] = x.tile(16, 8).placed(text)[lg.block_id(), 0] * 2

    x = floats(32, 8)
    y = np.zeros_like(x)
    doubled(x, y, device="sim")
    np.testing.assert_array_equal(y, 2 * x)
    ptx = doubled.compile("sm_80").ptx
    assert ptx.count("ld.global.v2") == 2
    assert "shared" not in ptx


def test_what_a_loop_carries_of_a_reduction_is_valid() -> None:
    """Which elements of it are valid depends on nothing but itself."""
    x = np.abs(floats(16, 16)) / 16

    def repeated(x: Any) -> Any:
        @lg.fold(3, lg.full((16,), 1, "f32"))
        def vector(k: Any, v: Any) -> Any:
            return lg.sum(x * v, axis=1)

        return vector

    both(repeated, [x], np.zeros(16, np.float32))


def test_what_control_flow_computes_of_padded_tiles_is_padded_alike() -> None:
    """100 elements are 128 in registers; what loops do with them neither ends nor adds padding."""

    types = {
        "x": lg.Tensor["i32", (100,)],
        "y": lg.Tensor["i32", (100,)],
        "z": lg.Tensor["i32", (2,)],
    }

    @lg.kernel(grid=1, warps=1, parameters=types)
    def kernel(x: Any, y: Any, z: Any) -> None:
        @lg.while_(lambda t: lg.sum(t) < 5000, x[:])
        def large(t: Any) -> Any:
            return t + 1

        @lg.fold(3, large)
        def larger(_: Any, t: Any) -> Any:
            return t + 1

        y[:] = larger
        z[0], z[1] = lg.sum(large), lg.sum(larger)

    x = np.arange(100, dtype=np.int32) - 30
    y, z = np.empty_like(x), np.empty(2, np.int32)
    kernel(x, y, z, device="sim")
    large = x + -(-(5000 - x.sum()) // 100)
    assert (y == large + 3).all()
    assert z.tolist() == [large.sum(), (large + 3).sum()]


def test_a_loop_that_uses_what_it_carries_as_a_whole_keeps_its_padding() -> None:
    """24 rows and columns are 32 in registers; each iteration reduces and broadcasts them."""
    n = 24

    def factor(a: Any) -> Any:
        row, column = lg.iota((n, n), 0), lg.iota((n, n), 1)

        @lg.fold(n, a)
        def lower(k: Any, m: Any) -> Any:
            at = k.to("i32")
            found = lg.sum(lg.where(column == at, m, 0.0), axis=1)
            pivot = lg.sum(lg.where(lg.arange(n) == at, found, 0.0))
            scaled = lg.where(lg.arange(n) >= at, found * lg.rsqrt(pivot), 0.0)
            rest = m - scaled[:, None] * scaled[None, :]
            left = lg.where((row > at) & (column > at), rest, m)
            return lg.where(column == at, scaled[:, None], left)

        return lg.where(column <= row, lower, 0)

    x = floats(n, n)
    a = (x @ x.T + n * np.eye(n)).astype(np.float32)
    found = both(factor, [a], np.zeros((n, n), np.float32), warps=2)
    np.testing.assert_allclose(found, np.linalg.cholesky(a), rtol=1e-3, atol=1e-4)


def test_rows_that_a_loop_reduces_at_the_end_of_a_tensor_are_stored() -> None:
    """A store drops the rows past the last one, also of what loops carry of one dimension."""
    types = dict.fromkeys("xy", lg.Tensor["f32", "M, N"])

    @lg.kernel(grid=lambda x: lg.ceildiv(x.shape[0], 16), warps=1, parameters=types)
    def softmax(x: Any, y: Any) -> None:
        i, pieces = lg.block_id(), x.tile(16, 32).shape[1]

        @lg.fold(pieces, (lg.full((16,), -float("inf"), "f32"), lg.zeros((16,), "f32")))
        def state(k: Any, most: Any, total: Any) -> Any:
            t = x.tile(16, 32)[i, k]
            larger = lg.maximum(most, lg.max(t, axis=1))
            own = lg.sum(lg.exp(t - larger[:, None]), axis=1)
            return larger, total * lg.exp(most - larger) + own

        for k in lg.loop(pieces):
            e = lg.exp(x.tile(16, 32)[i, k] - state[0][:, None])
            y.tile(16, 32)[i, k] = e / state[1][:, None]

    for m, n in ((20, 70), (3, 5)):
        x = floats(m, n)
        y = np.empty_like(x)
        softmax(x, y, device="sim")
        e = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
