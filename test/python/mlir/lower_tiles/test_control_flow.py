"""Loops and branches that carry tiles, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tile_kernels import kernel, load, outputs, store, tile

from lego_mlir.analysis.distributed import coalesced, reduced, transposed

X = np.random.default_rng(0).integers(0, 100, (8, 32)).astype(np.float32)
LAYOUT = coalesced((8, 32), 4, 2)
T, B = tile(LAYOUT, "f32"), tile(LAYOUT, "i1")


def run(body: str, expected: np.ndarray) -> None:
    """Run a kernel from %x to %y, and compare."""
    arguments = {"x": X, "y": np.zeros_like(expected)}
    v = f"%v = {load(arguments, 'x', T)}\n"
    text = kernel(arguments, 2, v + body + store(arguments, "y", "%r", T))
    for order in ("late", "early"):
        assert np.array_equal(outputs(text, arguments, order)["y"], expected)


def test_for() -> None:
    body = f"""
    %c5 = arith.constant 5 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %n, %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%k = %zero, %a = %v) -> (f32, {T}) {{
      %f = "lego.full"(%k) : (f32) -> {T}
      %b = arith.addf %a, %f : {T}
      %m = arith.addf %k, %one : f32
      scf.yield %m, %b : f32, {T}
    }}
    """
    run(body, X + 10)


def test_two_tiles_that_change_places() -> None:
    body = f"""
    %c3 = arith.constant 3 : index
    %z = arith.constant dense<1.0> : {T}
    %q, %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %v, %b = %z) -> ({T}, {T}) {{
      %s = arith.addf %a, %b : {T}
      scf.yield %s, %a : {T}, {T}
    }}
    """
    run(body, 2 * X + 1)


def test_a_loop_without_tiles_of_its_own() -> None:
    body = f"""
    %c3 = arith.constant 3 : index
    scf.for %o = %c0 to %c1 step %c1 {{
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %v) -> ({T}) {{
        %s = arith.addf %a, %v : {T}
        %t = scf.for %j = %c0 to %c3 step %c1 iter_args(%b = %s) -> ({T}) {{
          %u = arith.addf %b, %b : {T}
          scf.yield %u : {T}
        }}
        scf.yield %t : {T}
      }}
      {store({"y": X}, "y", "%r", T)}
    }}
    """
    expected = X
    for _ in range(3):
        expected = (expected + X) * 8
    arguments = {"x": X, "y": np.zeros_like(X)}
    text = kernel(arguments, 2, f"%v = {load(arguments, 'x', T)}\n" + body)
    assert np.array_equal(outputs(text, arguments)["y"], expected)


@pytest.mark.parametrize("least", [0, 1000])
def test_if(least: int) -> None:
    one = reduced(reduced(LAYOUT, 0), 1)
    half, k = tile(reduced(LAYOUT, 0), "f32"), tile(one, "f32")
    body = f"""
    %h = "lego.reduce"(%v) {{kind = "max", dim = 0 : i64}} : ({T}) -> {half}
    %m = "lego.reduce"(%h) {{kind = "max", dim = 1 : i64}} : ({half}) -> {k}
    %n = "lego.item"(%m) : ({k}) -> f32
    %least = arith.constant {float(least)} : f32
    %c = arith.cmpf ogt, %n, %least : f32
    %r = scf.if %c -> ({T}) {{
      %a = arith.addf %v, %v : {T}
      scf.yield %a : {T}
    }} else {{
      %b = arith.negf %v : {T}
      scf.yield %b : {T}
    }}
    """
    run(body, 2 * X if X.max() > least else -X)


def test_while() -> None:
    one = reduced(reduced(LAYOUT, 0), 1)
    half, k = tile(reduced(LAYOUT, 0), "f32"), tile(one, "f32")
    body = f"""
    %most = arith.constant 1000.0 : f32
    %two = arith.constant dense<2.0> : {T}
    %r = scf.while (%a = %v) : ({T}) -> ({T}) {{
      %h = "lego.reduce"(%a) {{kind = "max", dim = 0 : i64}} : ({T}) -> {half}
      %m = "lego.reduce"(%h) {{kind = "max", dim = 1 : i64}} : ({half}) -> {k}
      %n = "lego.item"(%m) : ({k}) -> f32
      %c = arith.cmpf olt, %n, %most : f32
      scf.condition(%c) %a : {T}
    }} do {{
    ^bb0(%b: {T}):
      %d = arith.mulf %b, %two : {T}
      scf.yield %d : {T}
    }}
    """
    expected = X
    while expected.max() < 1000:
        expected = 2 * expected
    run(body, expected)


def test_conversions_in_a_loop() -> None:
    other = transposed(coalesced((32, 8), 4, 2))
    u = tile(other, "f32")
    body = f"""
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %v) -> ({T}) {{
      %s = "lego.convert"(%a) : ({T}) -> {u}
      %p = "lego.scan"(%s) {{kind = "add", dim = 0 : i64}} : ({u}) -> {u}
      %q = "lego.convert"(%p) : ({u}) -> {T}
      scf.yield %q : {T}
    }}
    """
    expected = X
    for _ in range(3):
        expected = np.cumsum(expected, axis=0, dtype=np.float32)
    run(body, expected)
