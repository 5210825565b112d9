"""The pass fill_invalid: what it inserts, and that the module computes the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest
from fuzz.tile_programs import drawn_program
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_modules import load, memref, store, tile_module, tile_type

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source, new_context, parse
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.tile_ir.interpreter import arguments_of, interpret, random_inputs
from lego_mlir.mlir.tile_ir.kernels import tile_kernels
from lego_mlir.mlir.tile_ir.verifier import verify_tiles
from lego_mlir.mlir.tile_passes.fill_invalid import fill_invalid

Tensors = Mapping[str, tuple[str, tuple[int, ...]]]
T, ROW = "tensor<16x32xf32>", "tensor<16x1xf32>"


def filled(text: str) -> str:
    """Run the pass; check that the module is right, and computes the same. Return its text."""
    source = Source("tiles.mlir", text)
    module = parse(source, new_context())
    layouts = Layouts.of_module(module, source)
    inputs = random_inputs(arguments_of(module, layouts, source))
    before = interpret(module, inputs, layouts, source).tensors
    with module.context, ir.Location.unknown():
        for kernel in tile_kernels(module, layouts, source, Target.parse("sm_90a")):
            fill_invalid(kernel)
            verify_tiles(kernel)
    module.operation.verify()
    after = interpret(module, inputs, layouts, source).tensors
    for name, tensor in before.items():
        assert tensor.tobytes() == after[name].tobytes(), name
    return str(module)


def count(text: str, operation: str) -> int:
    return len(re.findall(rf"\b{re.escape(operation)}\b", text))


def reduction(kind: str = "add") -> str:
    return f'%r = "lego.reduce"(%x) {{kind = "{kind}", dim = 1 : i64}} : ({T}) -> {ROW}\n'


def rows(columns: int, body: str, result: str = "r", rows: int = 32) -> str:
    """Return a kernel with the tile %x of 16 rows, and a store of a column of results."""
    tensors = {"X": ("f32", (rows, columns)), "Y": ("f32", (rows, 1))}
    sixteen = "%c16 = arith.constant 16 : index\n%row = arith.muli %b, %c16 : index\n"
    text = (
        sixteen
        + load("x", "X", memref("f32", (rows, columns)), T, "%row, %c0")
        + body
        + store(result, "Y", memref("f32", (rows, 1)), ROW, "%row, %c0")
    )
    return tile_module(tensors, text, grid=-(-rows // 16))


def test_nothing_is_inserted_where_sizes_divide() -> None:
    text = filled(rows(32, f"%e = math.exp %x : {T}\n" + reduction()))
    for operation in ("arith.select", "lego.in_range", "lego.restrict", "other"):
        assert not count(text, operation), text


def test_a_load_fills_what_its_only_consumer_ignores() -> None:
    text = filled(rows(30, reduction("max")))
    assert "other = 0xFF800000 : f32" in text
    assert not count(text, "arith.select")


def test_consumers_that_disagree_get_selects() -> None:
    body = (
        reduction("max")
        + reduction("min").replace("%r", "%s")
        + f"%t0 = arith.addf %r, %s : {ROW}\n"
    )
    text = filled(rows(30, body, "t0"))
    assert not count(text, "other")
    assert count(text, "arith.select") == 2
    assert count(text, "lego.in_range") == 1  # one mask serves both


def test_a_sum_of_loaded_elements_needs_nothing() -> None:
    text = filled(rows(30, reduction("add")))
    assert not count(text, "arith.select")


def test_rows_past_the_end_cost_nothing_where_columns_are_reduced() -> None:
    """They are invalid in the result, too, and the store drops them."""
    text = filled(
        rows(32, f"%e = math.exp %x : {T}\n%r = " + reduction()[5:].replace("%x", "%e"), rows=20)
    )
    for operation in ("arith.select", "lego.in_range", "lego.restrict"):
        assert not count(text, operation), text


def test_what_a_store_does_not_drop_is_restricted() -> None:
    """A tile of 30 columns is stored into a tensor of 32."""
    tensors = {"X": ("f32", (16, 30)), "Y": ("f32", (16, 32)), "Z": ("f32", (16, 28))}
    text = filled(
        tile_module(
            tensors,
            load("x", "X", memref("f32", (16, 30)), T, "%c0, %c0")
            + f"%e = math.exp %x : {T}\n"
            + store("e", "Y", memref("f32", (16, 32)), T, "%c0, %c0")
            + store("e", "Z", memref("f32", (16, 28)), T, "%c0, %c0"),
        )
    )
    assert count(text, "lego.restrict") == 1
    assert re.search(r'"lego.store"\(%\w+, %arg1', text)


def test_masks_of_a_program_are_joined_in_one_restrict() -> None:
    body = (
        f"%z = arith.constant dense<0.0> : {T}\n"
        f"%m = arith.cmpf ogt, %x, %z : {T}\n"
        f'%v = "lego.restrict"(%x, %m) : ({T}, tensor<16x32xi1>) -> {T}\n'
        f"%n = arith.cmpf olt, %v, %z : {T}\n"
        f'%w = "lego.restrict"(%v, %n) : ({T}, tensor<16x32xi1>) -> {T}\n'
        f"%e = arith.addf %w, %w : {T}\n"
    )
    text = filled(
        tile_module(
            {"X": ("f32", (16, 32)), "Y": ("f32", (16, 32))},
            load("x", "X", memref("f32", (16, 32)), T, "%c0, %c0")
            + body
            + store("e", "Y", memref("f32", (16, 32)), T, "%c0, %c0"),
        )
    )
    assert count(text, "lego.restrict") == 1


def test_a_restricted_reduction_is_of_some_rows() -> None:
    """A row of no valid element is invalid: the maximum over rows ignores it."""
    body = (
        f"%z = arith.constant dense<2.5> : {T}\n"
        f"%m = arith.cmpf ogt, %x, %z : {T}\n"
        f'%v = "lego.restrict"(%x, %m) : ({T}, tensor<16x32xi1>) -> {T}\n'
        f'%s = "lego.reduce"(%v) {{kind = "add", dim = 1 : i64}} : ({T}) -> {ROW}\n'
        f"%n = arith.negf %s : {ROW}\n"
        f'%g = "lego.reduce"(%n) {{kind = "max", dim = 0 : i64}} : ({ROW}) -> tensor<1x1xf32>\n'
        f'%r = "lego.broadcast"(%g) : (tensor<1x1xf32>) -> {ROW}\n'
    )
    text = filled(rows(32, body))
    assert 'kind = "or"' in text


@pytest.mark.parametrize("columns", [32, 30])
def test_a_function_needs_an_identity_only_where_elements_are_invalid(columns: int) -> None:
    body = f"""%r = "lego.reduce_with"(%x) ({{
      ^bb0(%p: f32, %q: f32):
        %u = arith.maximumf %p, %q : f32
        gpu.yield %u : f32
      }}) {{dim = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0>,
          resultSegmentSizes = array<i32: 1, 0, 0, 0>}} : ({T}) -> {ROW}
    """
    text = rows(columns, body)
    if columns == 32:
        filled(text)
        return
    with pytest.raises(LegoError, match="some are invalid") as caught:
        filled(text)
    assert caught.value.hint is not None
    assert "identity = [... : f32]" in caught.value.hint
    filled(text.replace("dim = 1 : i64,", "dim = 1 : i64, identity = [0xFF800000 : f32],"))


def test_a_loop_over_columns_is_filled_inside() -> None:
    """The running maximum and sum of rows that the tiles do not divide."""
    tensors = {"X": ("f32", (20, 70)), "Y": ("f32", (20, 1))}
    body = (
        f"""%c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %c3 = arith.constant 3 : index
      %row = arith.muli %b, %c16 : index
      %z = arith.constant dense<0.0> : {ROW}
      %m = scf.for %k = %c0 to %c3 step %c1 iter_args(%before = %z) -> ({ROW}) {{
        %c = arith.muli %k, %c32 : index
"""
        + load("x", "X", memref("f32", (20, 70)), T, "%row, %c")
        + f"%e = math.exp %x : {T}\n"
        + reduction().replace("%x", "%e")
        + f"%after = arith.addf %before, %r : {ROW}\nscf.yield %after : {ROW}\n}}\n"
        + store("m", "Y", memref("f32", (20, 1)), ROW, "%row, %c0")
    )
    text = filled(tile_module(tensors, body, grid=2))
    assert count(text, "lego.in_range") == 1
    assert not count(text, "lego.restrict")


def test_branches_with_the_same_invalid_elements() -> None:
    """Both branches have the columns of the tensor, in a loop over columns."""
    tensors = {"X": ("f32", (16, 70)), "Y": ("f32", (16, 1))}
    body = (
        f"""%c32 = arith.constant 32 : index
      %c3 = arith.constant 3 : index
      %z = arith.constant dense<0.0> : {ROW}
      %m = scf.for %k = %c0 to %c3 step %c1 iter_args(%before = %z) -> ({ROW}) {{
        %c = arith.muli %k, %c32 : index
        %is_first = arith.cmpi eq, %k, %c0 : index
"""
        + load("x", "X", memref("f32", (16, 70)), T, "%c0, %c")
        + f"%e = scf.if %is_first -> ({T}) {{\n%y = math.exp %x : {T}\nscf.yield %y : {T}\n"
        + f"}} else {{\nscf.yield %x : {T}\n}}\n"
        + reduction().replace("%x", "%e")
        + f"%after = arith.addf %before, %r : {ROW}\nscf.yield %after : {ROW}\n}}\n"
        + store("m", "Y", memref("f32", (16, 1)), ROW, "%c0, %c0")
    )
    assert count(filled(tile_module(tensors, body)), "lego.in_range") == 1


def test_a_restricted_start_has_the_bounds_of_what_a_loop_adds() -> None:
    """Zeros of 30 columns, to which columns are added that a load bounds."""
    tensors = {"X": ("f32", (48, 30)), "Y": ("f32", (16, 1))}
    body = (
        f"""%c16 = arith.constant 16 : index
      %c3 = arith.constant 3 : index
      %z = arith.constant dense<0.0> : {T}
      %in = "lego.in_range"(%c0) {{dim = 1 : i64, size = 30 : i64}} : (index) -> tensor<16x32xi1>
      %start = "lego.restrict"(%z, %in) : ({T}, tensor<16x32xi1>) -> {T}
      %m = scf.for %k = %c0 to %c3 step %c1 iter_args(%before = %start) -> ({T}) {{
        %r = arith.muli %k, %c16 : index
"""
        + load("x", "X", memref("f32", (48, 30)), T, "%r, %c0")
        + f"%after = arith.addf %before, %x : {T}\nscf.yield %after : {T}\n}}\n"
        + reduction().replace("%x", "%m")
        + store("r", "Y", memref("f32", (16, 1)), ROW, "%c0, %c0")
    )
    filled(tile_module(tensors, body))


def test_bounds_that_every_turn_keeps_are_known_of_what_turns_compute() -> None:
    """A tile of 30 columns is loaded one turn ahead, and less than its row's maximum then."""
    tensors = {"X": ("f32", (64, 30)), "Y": ("f32", (16, 1))}
    restricted = (
        '%{0}in = "lego.in_range"(%{1}) {{dim = 1 : i64, size = 30 : i64}} : (index) -> '
        "tensor<16x32xi1>\n"
        f'%{{0}} = "lego.restrict"(%{{0}}all, %{{0}}in) : ({T}, tensor<16x32xi1>) -> {T}\n'
    )
    filler = f'%{{0}}all = "lego.fill"(%{{0}}) {{{{value = 0.0 : f32}}}} : ({T}) -> {T}\n'
    wide = f'%wide = "lego.broadcast"(%most) : ({ROW}) -> {T}\n'
    body = (
        f"""%c16 = arith.constant 16 : index
      %c3 = arith.constant 3 : index
      %z = arith.constant dense<0.0> : {ROW}
"""
        + load("x", "X", memref("f32", (64, 30)), T, "%c0, %c0")
        + filler.format("x")
        + restricted.format("first", "c0").replace("%firstall", "%xall")
        + f"""%m:2 = scf.for %k = %c0 to %c3 step %c1 iter_args(%held = %first, %before = %z)
          -> ({T}, {ROW}) {{
        %after = arith.addi %k, %c1 : index
        %row = arith.muli %after, %c16 : index
        %zero = arith.constant 0 : index
"""
        + load("next", "X", memref("f32", (64, 30)), T, "%row, %zero")
        + filler.format("next")
        + restricted.format("then", "zero").replace("%thenall", "%nextall")
        + reduction("max").replace("%r ", "%most ").replace("%x", "%held")
        + wide
        + f"%less = arith.subf %held, %wide : {T}\n"
        + reduction().replace("%x", "%less")
        + f"%sum = arith.addf %before, %r : {ROW}\nscf.yield %then, %sum : {T}, {ROW}\n}}\n"
        + store("m#1", "Y", memref("f32", (16, 1)), ROW, "%c0, %c0")
    )
    text = filled(tile_module(tensors, body))
    assert not count(text, "lego.restrict")


def test_what_changes_between_turns_is_refused_where_it_matters() -> None:
    tensors = {"X": ("f32", (16, 70)), "Y": ("f32", (16, 1))}
    body = (
        f"""%c32 = arith.constant 32 : index
      %c3 = arith.constant 3 : index
      %z = arith.constant dense<0.0> : {T}
      %m = scf.for %k = %c0 to %c3 step %c1 iter_args(%before = %z) -> ({T}) {{
        %c = arith.muli %k, %c32 : index
"""
        + load("x", "X", memref("f32", (16, 70)), T, "%c0, %c")
        + f"%after = arith.addf %before, %x : {T}\nscf.yield %after : {T}\n}}\n"
        + reduction().replace("%x", "%m")
        + store("r", "Y", memref("f32", (16, 1)), ROW, "%c0, %c0")
    )
    with pytest.raises(LegoError, match="changes between the iterations") as caught:
        filled(tile_module(tensors, body))
    assert "lego.fill" in str(caught.value.hint)
    right = body.replace(
        "%after = arith.addf %before, %x",
        f'%all = "lego.fill"(%x) {{value = 0.0 : f32}} : ({T}) -> {T}\n'
        "%after = arith.addf %before, %all",
    )
    text = filled(tile_module(tensors, right))
    assert not count(text, "lego.fill")
    assert not count(text, "arith.select")  # the load makes the zeros


def test_padding_of_partial_tiles_is_no_element() -> None:
    tiled = "OrderBy(Row(20, 30)).TileBy([2, 1], [16, 32])"
    access = (
        '%x = "lego.load"(%X, %b, %c0, %c0, %c0) {layout = #TILES, slice = array<i64: 2, 3>} '
        f": (memref<600xf32>, index, index, index, index) -> {T}\n"
    )
    sixteen = "%c16 = arith.constant 16 : index\n%row = arith.muli %b, %c16 : index\n"
    text = tile_module(
        {"X": ("f32", (20, 30)), "Y": ("f32", (20, 1))},
        sixteen
        + access
        + f"%e = math.exp %x : {T}\n"
        + reduction().replace("%x", "%e")
        + store("r", "Y", memref("f32", (20, 1)), ROW, "%row, %c0"),
        grid=2,
        layouts={"TILES": tiled},
    )
    assert count(filled(text), "lego.in_range") == 1


VIEWS = {
    "transpose": ('"lego.transpose"(%x) {order = array<i64: 1, 0>}', (32, 16), (16, 32)),
    "reshape": ('"lego.reshape"(%x)', (16, 1, 32), (16, 32)),
    "flat": ('"lego.reshape"(%x)', (512,), (16, 32)),
    "pairs": ('"lego.reshape"(%x)', (256, 2), (16, 32)),
}


@settings(deadline=None, max_examples=25)
@given(
    view=st.sampled_from(sorted(VIEWS)),
    size=st.tuples(st.integers(1, 16), st.integers(1, 32)),
    kind=st.sampled_from(["add", "mul", "max", "min"]),
    dim=st.integers(0, 2),
    masked=st.booleans(),
)
def test_views_keep_what_is_valid(
    view: str, size: tuple[int, int], kind: str, dim: int, masked: bool
) -> None:
    """Reduce a view of what was loaded, and store it where nothing is dropped."""
    operation, shape, _ = VIEWS[view]
    dim %= len(shape)
    result = (*shape[:dim], 1, *shape[dim + 1 :])
    mask = (
        f"%half = arith.constant dense<0.5> : {T}\n"
        f"%m = arith.cmpf olt, %x0, %half : {T}\n"
        f'%x = "lego.restrict"(%x0, %m) : ({T}, tensor<16x32xi1>) -> {T}\n'
    )
    plain = f"%x = arith.negf %x0 : {T}\n"
    v, r = tile_type(shape, "f32"), tile_type(result, "f32")
    at = ", ".join(["%c0"] * len(result))
    filled(
        tile_module(
            {"X": ("f32", size), "Y": ("f32", result)},
            load("x0", "X", memref("f32", size), T, "%c0, %c0")
            + (mask if masked else plain)
            + f"%v = {operation} : ({T}) -> {v}\n"
            + f'%r = "lego.reduce"(%v) {{kind = "{kind}", dim = {dim} : i64}} : ({v}) -> {r}\n'
            + store("r", "Y", memref("f32", result), r, at),
        )
    )


def test_dots_count_invalid_elements_as_zeros() -> None:
    tensors: dict[str, Any] = {
        "A": ("f16", (20, 40)),
        "B": ("f16", (40, 24)),
        "Y": ("f32", (20, 24)),
    }
    a, b, c = "tensor<32x48xf16>", "tensor<48x32xf16>", "tensor<32x32xf32>"
    text = filled(
        tile_module(
            tensors,
            load("a", "A", memref("f16", (20, 40)), a, "%c0, %c0")
            + load("b0", "B", memref("f16", (40, 24)), b, "%c0, %c0")
            + f"%e = math.exp %a : {a}\n%z = arith.constant dense<0.0> : {c}\n"
            + f'%d = "lego.dot"(%e, %b0, %z) : ({a}, {b}, {c}) -> {c}\n'
            + store("d", "Y", memref("f32", (20, 24)), c, "%c0, %c0"),
        )
    )
    assert count(text, "arith.select") == 1  # the load fills the other one with zeros
    assert not count(text, "lego.restrict")


def test_np_is_the_reference_of_the_filled_module() -> None:
    """Not only before and after agree: the numbers are right."""
    text = rows(30, f"%e = math.exp %x : {T}\n" + reduction().replace("%x", "%e"), rows=20)
    source = Source("tiles.mlir", text)
    module = parse(source, new_context())
    x = np.random.default_rng(3).standard_normal((20, 30)).astype(np.float32)
    y = interpret(module, [x, np.zeros((20, 1), np.float32)], source=source).tensors["Y"]
    assert np.allclose(y, np.exp(x).sum(1, keepdims=True), rtol=1e-6)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1 << 32))
def test_random_programs_compute_the_same(seed: int) -> None:
    try:
        filled(drawn_program(Random(seed), open_sizes=False))
    except LegoError as e:
        if "changes between the iterations" not in e.message:
            raise
