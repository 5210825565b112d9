"""Each operation on tiles, in random layouts: kernels run in the simulator, against NumPy."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_distributed import layouts
from tile_kernels import ELEMENTS, compiled, fits, kernel, load, outputs, store, tile

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    blocked,
    coalesced,
    joined,
    mma_accumulator,
    reduced,
    replicated,
    reshaped,
    split,
    transposed,
)
from lego_mlir.diagnostics import LegoError

WARPS = st.sampled_from([(), (2,), (3,), (2, 2)])


def run(
    inputs: dict[str, np.ndarray], expected: np.ndarray, warps: int, body: str, order: str = "late"
) -> None:
    """Run a kernel that stores to %y, and compare."""
    arguments = {**inputs, "y": np.zeros_like(expected)}
    found = outputs(kernel(arguments, warps, body), arguments, order)["y"]
    assert np.array_equal(found, expected)


def store_y(expected: np.ndarray, value: str, layout: DistributedLayout) -> str:
    return store({"y": expected}, "y", value, tile(layout, ELEMENTS[expected.dtype]))


def load_x(x: np.ndarray, layout: DistributedLayout) -> str:
    return load({"x": x}, "x", tile(layout, ELEMENTS[x.dtype]))


def numbers(shape: tuple[int, ...], dtype: type = np.int32) -> np.ndarray:
    """Return different small numbers in no order."""
    n = prod(shape)
    return (np.arange(n) * 7 % max(n, 1) % 113).astype(dtype).reshape(shape)


@given(st.data(), WARPS)
@settings(max_examples=8, deadline=None)
def test_iota_and_full_and_select(data: st.DataObject, warps: tuple[int, ...]) -> None:
    layout = data.draw(layouts((4, 12, 8), warps))
    assume(fits(np.int64, layout, layout))
    dim = data.draw(st.integers(0, 2))
    index = np.broadcast_to(
        np.arange(layout.shape[dim]).reshape([-1, *[1] * (2 - dim)]), (4, 12, 8)
    )
    kind, mask = tile(layout, "i32"), tile(layout, "i1")
    body = f"""
    %i = "lego.iota"() {{dim = {dim} : i64}} : () -> {kind}
    %c = arith.constant 3 : i32
    %three = "lego.full"(%c) : (i32) -> {kind}
    %nine = arith.constant dense<9> : {kind}
    %least = arith.cmpi sgt, %i, %three : {kind}
    %v = arith.select %least, %nine, %i : {mask}, {kind}
    """
    expected = np.where(index > 3, 9, index).astype(np.int32)
    run({}, expected, layout.warps, body + store_y(expected, "%v", layout))


@given(st.data(), WARPS, st.integers(-1, 13))
@settings(max_examples=8, deadline=None)
def test_in_range(data: st.DataObject, warps: tuple[int, ...], size: int) -> None:
    layout = data.draw(layouts((12, 10), warps))
    assume(fits(np.int64, layout, layout))
    size = max(size, 1)
    mask, kind = tile(layout, "i1"), tile(layout, "i32")
    body = f"""
    %c2 = arith.constant 2 : index
    %r = "lego.in_range"(%c2) {{dim = 0 : i64, size = {size} : i64}} : (index) -> {mask}
    %v = arith.extui %r : {mask} to {kind}
    """
    expected = np.repeat((np.arange(12) + 2 < size).astype(np.int32)[:, None], 10, axis=1)
    run({}, expected, layout.warps, body + store_y(expected, "%v", layout))


def test_proven_ranges_are_no_comparisons() -> None:
    layout = coalesced((256,), 4, 4)
    mask, kind = tile(layout, "i1"), tile(layout, "i32")
    y = np.zeros(256, np.int32)
    body = f"""
    %r = "lego.in_range"(%c0) {{dim = 0 : i64, size = 256 : i64}} : (index) -> {mask}
    %v = arith.extui %r : {mask} to {kind}
    {store_y(y, "%v", layout)}
    """
    text = compiled(kernel({"y": y}, 4, body)).ptx
    assert "setp" not in text


@given(st.data(), WARPS, st.sampled_from([(0,), (1,), (2,), (0, 2)]))
@settings(max_examples=8, deadline=None)
def test_broadcasts(data: st.DataObject, warps: tuple[int, ...], dims: tuple[int, ...]) -> None:
    layout = data.draw(layouts((4, 6, 8), warps))
    assume(fits(np.int64, layout, layout))
    quotient = layout
    for dim in dims:
        quotient = reduced(quotient, dim)
    x = numbers(quotient.shape)
    kind, result = tile(quotient, "i32"), tile(layout, "i32")
    body = f"""
    %v = {load_x(x, quotient)}
    %w = "lego.broadcast"(%v) : ({kind}) -> {result}
    """
    expected = np.broadcast_to(x, layout.shape).copy()
    run({"x": x}, expected, layout.warps, body + store_y(expected, "%w", layout))


@given(st.data(), WARPS, st.permutations([0, 1, 2]), st.sampled_from([np.int8, np.float64]))
@settings(max_examples=6, deadline=None)
def test_transpositions(
    data: st.DataObject, warps: tuple[int, ...], order: list[int], dtype: type
) -> None:
    layout = data.draw(layouts((4, 12, 8), warps))
    assume(fits(np.int64, layout, layout))
    x = numbers(layout.shape, dtype)
    result, element = transposed(layout, order), ELEMENTS[x.dtype]
    body = f"""
    %v = {load_x(x, layout)}
    %w = "lego.transpose"(%v) {{order = array<i64: {", ".join(map(str, order))}>}}
        : ({tile(layout, element)}) -> {tile(result, element)}
    """
    expected = np.ascontiguousarray(x.transpose(order))
    run({"x": x}, expected, layout.warps, body + store_y(expected, "%w", result))


def test_reshape_and_split_and_join() -> None:
    layout = blocked((8, 64), (1, 8), (4, 8), (2, 1))
    x = numbers((8, 64))
    wide = reshaped(layout, (8, 32, 2))
    half = split(wide)
    whole = joined(half, 2)
    back = reshaped(whole, (8, 64))
    body = f"""
    %v = {load_x(x, layout)}
    %r = "lego.reshape"(%v) : ({tile(layout, "i32")}) -> {tile(wide, "i32")}
    %e, %o = "lego.split"(%r) : ({tile(wide, "i32")}) -> ({tile(half, "i32")}, {tile(half, "i32")})
    %j = "lego.join"(%o, %e) : ({tile(half, "i32")}, {tile(half, "i32")}) -> {tile(whole, "i32")}
    %w = "lego.reshape"(%j) : ({tile(whole, "i32")}) -> {tile(back, "i32")}
    """
    expected = x.reshape(8, 32, 2)[:, :, ::-1].reshape(8, 64).copy()
    run({"x": x}, expected, 2, body + store_y(expected, "%w", back))


@given(st.data(), WARPS, st.sampled_from([np.int8, np.float16, np.float32, np.int64]))
@settings(max_examples=12, deadline=None)
def test_takes(data: st.DataObject, warps: tuple[int, ...], dtype: type) -> None:
    source = data.draw(layouts((4, 12, 8), warps))
    dim = data.draw(st.integers(0, 2))
    shape = [4, 12, 8]
    shape[dim] = data.draw(st.sampled_from([1, 4, 8]))
    layout = data.draw(layouts(tuple(shape), warps))
    assume(fits(dtype, source, layout, layout))
    x = numbers((4, 12, 8), dtype)
    i = np.random.default_rng(1).integers(0, (4, 12, 8)[dim], shape).astype(np.int32)
    check_take(source, layout, x, i, dim)


def check_take(
    source: DistributedLayout, layout: DistributedLayout, x: np.ndarray, i: np.ndarray, dim: int
) -> str:
    """Run a take, compare, and return the PTX."""
    element = ELEMENTS[x.dtype]
    expected = np.take_along_axis(x, i.astype(np.int64), dim)
    arguments = {"x": x, "i": i, "y": np.zeros_like(expected)}
    indices, result = tile(layout, "i32"), tile(layout, element)
    body = f"""
    %v = {load(arguments, "x", tile(source, element))}
    %k = {load(arguments, "i", indices)}
    %w = "lego.take"(%v, %k) {{dim = {dim} : i64}}
        : ({tile(source, element)}, {indices}) -> {result}
    {store(arguments, "y", "%w", result)}
    """
    text = kernel(arguments, source.warps, body)
    assert np.array_equal(outputs(text, arguments)["y"], expected)
    return compiled(text).ptx


def test_a_take_inside_of_warps_shuffles() -> None:
    layout = blocked((8, 64), (1, 2), (1, 32), (4, 1))
    x = numbers((8, 64), np.float32)
    i = np.random.default_rng(2).integers(0, 64, (8, 64)).astype(np.int32)
    text = check_take(layout, layout, x, i, 1)
    # Each warp has 2 rows of 2 registers a lane, of which an index may mean either.
    assert text.count("shfl.sync.idx") == 8
    assert "st.shared" not in text
    text = check_take(layout, layout, x, np.minimum(i, 7), 0)
    assert "shfl" not in text  # the rows are divided among warps
    assert "st.shared" in text


def test_an_item_is_every_threads() -> None:
    layout = coalesced((64,), 4, 2)
    x = numbers((64,), np.float32)
    one = reduced(layout, 0)
    kind = tile(layout, "f32")
    body = f"""
    %v = {load_x(x, layout)}
    %m = "lego.reduce"(%v) {{kind = "max", dim = 0 : i64}} : ({kind}) -> {tile(one, "f32")}
    %n = "lego.item"(%m) : ({tile(one, "f32")}) -> f32
    %f = "lego.full"(%n) : (f32) -> {kind}
    %w = arith.subf %f, %v : {kind}
    """
    expected = x.max() - x
    run({"x": x}, expected, 2, body + store_y(expected, "%w", layout))


@pytest.mark.parametrize("order", ["late", "early", "random:3"])
def test_one_thread_stores_a_scalar(order: str) -> None:
    body = """
    %c5 = arith.constant 5 : i32
    "lego.store"(%c5, %y, %c1) {layout = #y} : (i32, memref<3xi32>, index) -> ()
    """
    layout = replicated((1,), 4)
    one = f"""
    %v = arith.constant dense<7> : {tile(layout, "i32")}
    "lego.store"(%v, %y, %c0) {{layout = #y, slice = array<i64: 0>}}
        : ({tile(layout, "i32")}, memref<3xi32>, index) -> ()
    """
    run({}, np.array([7, 5, 0], np.int32), 4, body + one, order)


@pytest.mark.parametrize("order", ["late", "early", "random:2"])
def test_all_threads_get_what_an_update_of_one_returns(order: str) -> None:
    layout = coalesced((64,), 4, 2)
    n = np.array([30], np.int32)
    body = f"""
    %c5 = arith.constant 5 : i32
    %old = "lego.atomic"(%c5, %n, %c0) {{layout = #n, kind = "add"}}
        : (i32, memref<1xi32>, index) -> i32
    %v = "lego.full"(%old) : (i32) -> {tile(layout, "i32")}
    """
    expected = np.full(64, 30, np.int32)
    arguments = {"n": n, "y": np.zeros_like(expected)}
    found = outputs(kernel(arguments, 2, body + store_y(expected, "%v", layout)), arguments, order)
    assert np.array_equal(found["y"], expected)
    assert found["n"] == 35


def test_restrict_and_the_tensors_end_drop_elements() -> None:
    layout, other = coalesced((16, 16), 4, 2), mma_accumulator((16, 16), (1, 2))
    x = numbers((12, 16))
    kind, mask = tile(layout, "i32"), tile(layout, "i1")
    # Stored at once, and after a conversion.
    for convert in (False, True):
        stored = other if convert else layout
        body = f"""
        %v = {load_x(x, layout)}
        %j = "lego.iota"() {{dim = 1 : i64}} : () -> {kind}
        %c = arith.constant dense<10> : {kind}
        %m = arith.cmpi slt, %j, %c : {kind}
        %r = "lego.restrict"(%v, %m) : ({kind}, {mask}) -> {kind}
        {f'%s = "lego.convert"(%r) : ({kind}) -> {tile(other, "i32")}' if convert else ""}
        """
        expected = np.zeros((13, 16), np.int32)
        expected[:12, :10] = x[:, :10]
        run(
            {"x": x},
            expected,
            2,
            body + store_y(expected, "%s" if convert else "%r", stored),
        )


@pytest.mark.parametrize("order", ["late", "early", "random:1"])
def test_copies_are_stored_once(order: str) -> None:
    layout = reduced(mma_accumulator((32, 16), (2, 2)), 1)
    x = numbers((32, 1))
    body = f"%v = {load_x(x, layout)}\n"
    run({"x": x}, x, 4, body + store_y(x, "%v", layout), order)


def test_constants_that_differ_are_refused() -> None:
    layout = coalesced((2,), 4, 1)
    y = np.zeros(2, np.int32)
    body = f"""
    %v = arith.constant dense<[1, 2]> : {tile(layout, "i32")}
    {store_y(y, "%v", layout)}
    """
    with pytest.raises(LegoError, match="differ"):
        _ = compiled(kernel({"y": y}, 1, body)).index
