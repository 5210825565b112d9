"""Reductions and scans in random layouts: kernels run in the simulator, against NumPy."""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_distributed import SHAPES, layouts
from tile_kernels import ELEMENTS, compiled, kernel, load, outputs, store, tile

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    blocked,
    coalesced,
    mma_accumulator,
    reduced,
)

WARPS = st.sampled_from([(), (2,), (3,), (2, 2), (2, 2, 2)])


def unsigned(x: np.ndarray) -> np.ndarray:
    """Return the same bits as unsigned numbers."""
    return x.view(f"u{x.itemsize}")


INTEGERS: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "umax": lambda a, b: np.maximum(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}")).view(
        a.dtype
    ),
    "umin": lambda a, b: np.minimum(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}")).view(
        a.dtype
    ),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
FLOATS = ("add", "max", "min")
TYPES = [np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64]


def numbers(shape: tuple[int, ...], dtype: type, most: int = 3) -> np.ndarray:
    """Return small numbers, of which sums are exact."""
    random = np.random.default_rng(prod(shape))
    return random.integers(-most, most + 1, shape).astype(dtype)


def kinds(dtype: type) -> tuple[str, ...]:
    return FLOATS if np.issubdtype(dtype, np.floating) else tuple(INTEGERS)


def accumulated(x: np.ndarray, kind: str, dim: int) -> np.ndarray:
    """Return the inclusive scan, one after another."""
    found = np.moveaxis(x, dim, 0).copy()
    for k in range(1, len(found)):
        found[k] = INTEGERS[kind](found[k - 1], found[k])
    return np.moveaxis(found, 0, dim).copy()


def run(
    layout: DistributedLayout, x: np.ndarray, what: str, expected: np.ndarray, order: str = "late"
) -> str:
    """Run a reduction or scan, an operation with its attributes, and compare; return the text."""
    element = ELEMENTS[x.dtype]
    result = layout if x.shape == expected.shape else _quotient(layout, expected.shape)
    arguments = {"x": x, "y": np.zeros_like(expected)}
    text = kernel(
        arguments,
        layout.warps,
        f"""
    %v = {load(arguments, "x", tile(layout, element))}
    %w = {what} : ({tile(layout, element)}) -> {tile(result, element)}
    {store(arguments, "y", "%w", tile(result, element))}
    """,
    )
    found = outputs(text, arguments, order)["y"]
    assert np.array_equal(found, expected)
    return text


def _quotient(layout: DistributedLayout, shape: tuple[int, ...]) -> DistributedLayout:
    (dim,) = (d for d in range(len(shape)) if shape[d] != layout.shape[d])
    return reduced(layout, dim)


@given(st.data(), WARPS, st.sampled_from(SHAPES), st.sampled_from(TYPES))
@settings(max_examples=15, deadline=None)
def test_random_reductions(
    data: st.DataObject, warps: tuple[int, ...], shape: tuple[int, ...], dtype: type
) -> None:
    layout = data.draw(layouts(shape, warps))
    dim = data.draw(st.integers(0, len(shape) - 1))
    kind = data.draw(st.sampled_from(kinds(dtype)))
    x = numbers(shape, dtype)
    expected = accumulated(x, kind, dim).take([-1], dim)
    run(layout, x, f'"lego.reduce"(%v) {{kind = "{kind}", dim = {dim} : i64}}', expected)


@given(st.data(), WARPS, st.sampled_from(SHAPES), st.sampled_from(TYPES), st.booleans())
@settings(max_examples=15, deadline=None)
def test_random_scans(
    data: st.DataObject, warps: tuple[int, ...], shape: tuple[int, ...], dtype: type, back: bool
) -> None:
    layout = data.draw(layouts(shape, warps))
    dim = data.draw(st.integers(0, len(shape) - 1))
    kind = data.draw(st.sampled_from(kinds(dtype)))
    x = numbers(shape, dtype)
    expected = accumulated(np.flip(x, dim) if back else x, kind, dim)
    expected = np.flip(expected, dim).copy() if back else expected
    reverse = ", reverse" if back else ""
    run(layout, x, f'"lego.scan"(%v) {{kind = "{kind}", dim = {dim} : i64{reverse}}}', expected)


ARGMAX = """
    ^bb0(%a: f32, %i: i32, %b: f32, %j: i32):
      %more = arith.cmpf ogt, %b, %a : f32
      %same = arith.cmpf oeq, %b, %a : f32
      %first = arith.cmpi slt, %j, %i : i32
      %tie = arith.andi %same, %first : i1
      %take = arith.ori %more, %tie : i1
      %m = arith.select %take, %b, %a : f32
      %n = arith.select %take, %j, %i : i32
      "gpu.yield"(%m, %n) : (f32, i32) -> ()
"""
SEGMENTS = ", ".join(
    f"{name} = array<i32: 1, 1, 0, 0>" for name in ("operandSegmentSizes", "resultSegmentSizes")
)


@given(st.data(), WARPS, st.integers(0, 1))
@settings(max_examples=8, deadline=None)
def test_argmax(data: st.DataObject, warps: tuple[int, ...], dim: int) -> None:
    layout = data.draw(layouts((8, 12), warps))
    x = numbers((8, 12), np.float32, 40)
    expected = np.argmax(x, axis=dim, keepdims=True).astype(np.int32)
    arguments = {"x": x, "y": expected * 0}
    value, index = tile(layout, "f32"), tile(layout, "i32")
    quotient = reduced(layout, dim)
    top, at = tile(quotient, "f32"), tile(quotient, "i32")
    body = f"""
    %v = {load(arguments, "x", value)}
    %k = "lego.iota"() {{dim = {dim} : i64}} : () -> {index}
    %top, %at = "lego.reduce_with"(%v, %k) ({{ {ARGMAX} }}) {{dim = {dim} : i64, {SEGMENTS}}}
        : ({value}, {index}) -> ({top}, {at})
    {store(arguments, "y", "%at", at)}
    """
    found = outputs(kernel(arguments, layout.warps, body), arguments)["y"]
    assert np.array_equal(found, expected)


COMPOSE = """
    ^bb0(%e: i32, %a: i32, %f: i32, %b: i32):
      %p = arith.constant 251 : i32
      %mn = arith.muli %e, %f : i32
      %mr = arith.remsi %mn, %p : i32
      %an = arith.muli %a, %f : i32
      %s = arith.addi %an, %b : i32
      %r = arith.remsi %s, %p : i32
      "gpu.yield"(%mr, %r) : (i32, i32) -> ()
"""


@given(st.data(), WARPS, st.integers(0, 1), st.booleans())
@settings(max_examples=10, deadline=None)
def test_scans_keep_the_order(
    data: st.DataObject, warps: tuple[int, ...], dim: int, back: bool
) -> None:
    """Affine maps are composed, which does not commute."""
    layout = data.draw(layouts((8, 12), warps))
    random = np.random.default_rng(3)
    m, c = (random.integers(1, 251, (8, 12)).astype(np.int32) for _ in range(2))
    rows = list(np.moveaxis(np.stack([m, c], -1), dim, 0))

    def compose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        composed = a[..., 0] * b[..., 0] % 251, (a[..., 1] * b[..., 0] + b[..., 1]) % 251
        return np.stack(composed, -1)

    total = [reduce(compose, rows[k:] if back else rows[: k + 1]) for k in range(len(rows))]
    expected = np.moveaxis(np.stack(total), 0, dim)[..., 1]
    expected = np.ascontiguousarray(expected).astype(np.int32)
    arguments = {"m": m, "x": c, "y": expected * 0}
    kind = tile(layout, "i32")
    reverse = ", reverse" if back else ""
    body = f"""
    %v = {load(arguments, "m", kind)}
    %w = {load(arguments, "x", kind)}
    %p, %q = "lego.scan_with"(%v, %w) ({{ {COMPOSE} }}) {{dim = {dim} : i64, {SEGMENTS}{reverse}}}
        : ({kind}, {kind}) -> ({kind}, {kind})
    {store(arguments, "y", "%q", kind)}
    """
    found = outputs(kernel(arguments, layout.warps, body), arguments)["y"]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", ["max", "min"])
def test_a_nan_is_kept(kind: str) -> None:
    layout = coalesced((2, 256), 4, 4)
    x = numbers((2, 256), np.float32)
    x[1, 77] = np.nan
    element = tile(layout, "f32")
    result = tile(reduced(layout, 1), "f32")
    arguments = {"x": x, "y": np.zeros((2, 1), np.float32)}
    body = f"""
    %v = {load(arguments, "x", element)}
    %w = "lego.reduce"(%v) {{kind = "{kind}", dim = 1 : i64}} : ({element}) -> {result}
    {store(arguments, "y", "%w", result)}
    """
    found = outputs(kernel(arguments, 4, body), arguments)["y"]
    assert np.isnan(found[1, 0])
    assert found[0, 0] == {"max": np.max, "min": np.min}[kind](x[0])


REDUCE = '"lego.reduce"(%v) {kind = "add", dim = 1 : i64}'


def test_integers_are_reduced_over_a_warp_by_one_instruction() -> None:
    layout = coalesced((4, 128), 4, 4)
    x = numbers((4, 128), np.int32)
    ptx = compiled(run(layout, x, REDUCE, x.sum(1, keepdims=True, dtype=np.int32))).ptx
    assert ptx.count("redux.sync.add.s32") == 1
    assert "shfl" not in ptx


def test_halves_are_shuffled_in_pairs() -> None:
    layout = mma_accumulator((32, 16), (2, 1))
    x = numbers((32, 16), np.float16)
    ptx = compiled(run(layout, x, REDUCE, x.sum(1, keepdims=True, dtype=np.float16))).ptx
    assert ptx.count("shfl.sync.bfly") == 2  # two rows a thread, among four lanes
    assert "add.rn.f16x2" in ptx or "add.f16x2" in ptx


def test_each_warp_stores_one_partial_result() -> None:
    layout = blocked((1, 1024), (1, 4), (1, 32), (1, 8))
    x = numbers((1, 1024), np.float32)
    for order in ("late", "early", "random:5"):
        text = run(layout, x, REDUCE, x.sum(1, keepdims=True), order)
    ptx = compiled(text).ptx
    assert ptx.count("st.shared") == 1
    assert ptx.count("ld.shared.v4") == 2
    assert ptx.count("shfl.sync") == 5
