"""The verifier of tile IR: each rule by a module that breaks it, and layouts in canonical form."""

from __future__ import annotations

import re

import pytest
from tile_modules import load, memref, store, tile_module

from lego_mlir.compiler.driver import Compilation
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source

SEGMENTS_1 = "{operandSegmentSizes = array<i32: 1, 1, 0>, layout = #X} "
SEGMENTS_2 = "{operandSegmentSizes = array<i32: 1, 2, 0>, layout = #X}"
T, ROW = "tensor<4x8xf32>", "tensor<4x1xf32>"
M = memref("f32", (4, 8))


def module(body: str, warps: int = 4, begin: bool = True) -> str:
    """Return a module whose kernel has the tile %x."""
    first = load("x", "X", M, T, "%c0, %c0") if begin else ""
    tensors = {"X": ("f32", (4, 8)), "I": ("i32", (32,))}
    return tile_module(tensors, first + body, warps=warps)


def refusal(text: str) -> LegoError:
    with pytest.raises(LegoError) as caught:
        Compilation(Source("tiles.mlir", text)).text("placed")
    error = caught.value
    assert error.location is not None, error
    assert error.location.line > 0
    assert "\n" not in error.message
    return error


def lego(name: str, operands: str, kinds: str, result: str, attributes: str = "") -> str:
    braces = f" {{{attributes}}}" if attributes else ""
    return f'%r = "lego.{name}"({operands}){braces} : ({kinds}) -> {result}\n'


FUNCTION = """%r = "lego.reduce_with"(%x) ({{
  ^bb0({arguments}):
    {inside}
  }}) {{dim = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0>,
      resultSegmentSizes = array<i32: 1, 0, 0, 0>{more}}} : (tensor<4x8xf32>) -> tensor<4x1xf32>
"""


def function(inside: str, arguments: str = "%p: f32, %q: f32", more: str = "") -> str:
    return FUNCTION.format(arguments=arguments, inside=inside, more=more)


WRONG = {
    "dimension": (lego("reduce", "%x", T, ROW, 'kind = "add", dim = 2 : i64'), "dimensions 0 to 1"),
    "kind": (lego("reduce", "%x", T, ROW, 'kind = "mean", dim = 1 : i64'), "has the kind 'mean'"),
    "kind of floats": (lego("scan", "%x", T, T, 'kind = "or", dim = 1 : i64'), "elements of f32"),
    "a part that does not divide": (
        lego("extract_part", "%x, %c0", f"{T}, index", "tensor<3x8xf32>"),
        r"of \[3, 8\] of a tile",
    ),
    "a part of another type": (
        lego("extract_part", "%x, %c0", f"{T}, index", "tensor<2x8xf16>"),
        "f16",
    ),
    "no kind": (lego("reduce", "%x", T, ROW, "kind = 3 : i64, dim = 1 : i64"), "builtin.string"),
    "reduced shape": (
        lego("reduce", "%x", T, "tensor<4xf32>", 'kind = "add", dim = 1 : i64'),
        r"result of the shape \[4\], not \[4, 1\]",
    ),
    "broadcast": (lego("broadcast", "%x", T, "tensor<8x8xf32>"), r"\[4, 8\] to \[8, 8\]"),
    "rank": (lego("broadcast", "%x", T, "tensor<1x4x8xf32>"), "lego.reshape adds some"),
    "reshape": (lego("reshape", "%x", T, "tensor<33xf32>"), "of 32 elements"),
    "order": (
        lego("transpose", "%x", T, "tensor<8x4xf32>", "order = array<i64: 1, 1>"),
        r"has the order \[1, 1\]",
    ),
    "order's type": (lego("transpose", "%x", T, "tensor<8x4xf32>", "order = 3 : i64"), "order"),
    "transposed": (lego("transpose", "%x", T, T, "order = array<i64: 1, 0>"), r"not \[8, 4\]"),
    "split": (
        '%p, %q = "lego.split"(%x) : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)\n',
        "has 2 results",
    ),
    "join": (lego("join", "%x, %x", f"{T}, {T}", "tensor<4x8x3xf32>"), r"not \[4, 8, 2\]"),
    "item": (lego("item", "%x", T, "f32"), "takes a tile of one element"),
    "full": (
        "%n = arith.constant 1 : i32\n" + lego("full", "%n", "i32", T),
        "a number of i32, not f32",
    ),
    "iota": ('%r = "lego.iota"() {dim = 0 : i64} : () -> tensor<4xi64>\n', "of i64, not i32"),
    "in range": (
        lego("in_range", "%c0", "index", "tensor<4xi8>", "dim = 0 : i64, size = 3 : i64"),
        "of i8, not i1",
    ),
    "restrict": (lego("restrict", "%x, %x", f"{T}, {T}", T), "a mask of f32, not i1"),
    "fill": (lego("fill", "%x", T, T, "value = 0 : i32"), "has value = 0 : i32"),
    "dot": (
        "%z = arith.constant dense<0.0> : tensor<4x4xf32>\n"
        + lego("dot", "%x, %x, %z", f"{T}, {T}, tensor<4x4xf32>", "tensor<4x4xf32>"),
        "m×k, k×n",
    ),
    "accumulator": (
        "%a = arith.constant dense<0.0> : tensor<4x4xf32>\n"
        "%z = arith.constant dense<0.0> : tensor<4x4xf16>\n"
        + lego(
            "dot",
            "%a, %a, %z",
            "tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf16>",
            "tensor<4x4xf16>",
        ),
        "accumulates in f16",
    ),
    "take": (
        "%i = arith.constant dense<0> : tensor<2x8xi32>\n"
        + lego("take", "%x, %i", f"{T}, tensor<2x8xi32>", "tensor<2x8xf32>", "dim = 1 : i64"),
        "other dimensions are of the same size",
    ),
    "slice": (
        '%r = "lego.load"(%X, %c0, %c0) {layout = #X, slice = array<i64: 0>} '
        f": ({M}, index, index) -> {T}\n",
        r"has the slice \[0\]",
    ),
    "no slice": (
        f'%r = "lego.load"(%X, %c0, %c0) {{layout = #X}} : ({M}, index, index) -> {T}\n',
        "slice",
    ),
    "origin": (
        f'%r = "lego.load"(%X, %c0) {{layout = #X, slice = array<i64: 0, 1>}} '
        f": ({M}, index) -> {T}\n",
        "has 1 indices",
    ),
    "element": (
        '%r = "lego.load"(%X, %c0, %c0) {layout = #X, slice = array<i64: 0, 1>} '
        f": ({M}, index, index) -> tensor<4x8xf16>\n",
        "a tile of f16, not f32",
    ),
    "other": (
        '%r = "lego.load"(%X, %c0, %c0) {layout = #X, slice = array<i64: 0, 1>, other = 1 : i32} '
        f": ({M}, index, index) -> {T}\n",
        "has other = 1 : i32",
    ),
    "symbols": (
        '%r = "lego.load"(%X, %c0, %c0) {layout = #lego.layout<"OrderBy(Row(N, 8))">, '
        f"slice = array<i64: 0, 1>}} : ({M}, index, index) -> {T}\n",
        "2 dimensions and 1 symbols",
    ),
    "indices": (
        f'%r = "lego.gather"(%X, %x, %x) {SEGMENTS_2} : ({M}, {T}, {T}) -> {T}\n',
        "indices of f32, not i32",
    ),
    "number of indices": (
        '%k = "lego.iota"() {dim = 0 : i64} : () -> tensor<4xi32>\n'
        f'%r = "lego.gather"(%X, %k) {SEGMENTS_1}'
        f": ({M}, tensor<4xi32>) -> tensor<4xf32>\n",
        "has 1 tiles of indices",
    ),
    "atomic kind": (
        '%k = "lego.iota"() {dim = 0 : i64} : () -> tensor<4xi32>\n'
        '"lego.scatter"(%k, %I, %k) '
        '{operandSegmentSizes = array<i32: 1, 1, 1, 0>, layout = #I, kind = "mul"} '
        ": (tensor<4xi32>, memref<32xi32>, tensor<4xi32>) -> ()\n",
        "no atomic update 'mul'",
    ),
    "atomic kind of a store": (
        f'"lego.store"(%x, %X, %c0, %c0) {{layout = #X, slice = array<i64: 0, 1>, kind = "or"}} '
        f": ({T}, {M}, index, index) -> ()\n",
        "the atomic update 'or' of f32",
    ),
    "atomic update by an element": (
        '%n = arith.constant 1.0 : f32\n"lego.store"(%n, %X, %c0, %c0) '
        f'{{layout = #X, kind = "add"}} : (f32, {M}, index, index) -> ()\n',
        "of no tile in registers has 'kind'",
    ),
    "function's arguments": (
        function("gpu.yield %p : f32", "%p: f32"),
        r"a function of \(f32\), not of \(f32, f32\)",
    ),
    "function's result": (function("gpu.yield %p, %q : f32, f32"), r"returns \(f32, f32\)"),
    "function's operations": (
        function("%b2 = gpu.block_id x\ngpu.yield %p : f32"),
        "'gpu.block_id' in the function",
    ),
    "identity": (
        function("gpu.yield %p : f32", more=", identity = [1 : i32]"),
        r"has the identity \[1",
    ),
    "tensor operation": (
        "%n = arith.constant 1.0 : f32\n%r = tensor.splat %n : tensor<4x8xf32>\n",
        "lego.full makes",
    ),
    "constant": ("%r = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>\n", "elements differ"),
    "dynamic": (
        '%r = "lego.iota"() {dim = 0 : i64} : () -> tensor<?xi32>\n',
        "of at least 1",
    ),
    "rank 0": (
        "%n = arith.constant 1.0 : f32\n" + lego("full", "%n", "f32", "tensor<f32>"),
        "one dimension or more",
    ),
    "too large": (
        '%r = "lego.iota"() {dim = 0 : i64} : () -> tensor<1048577xi32>\n',
        "a CTA holds at most",
    ),
    "odd integers": (
        "%n = arith.constant 1 : i7\n" + lego("full", "%n", "i7", "tensor<4xi7>"),
        "elements of i7",
    ),
    "vectors": (
        "%v = arith.constant dense<1.0> : vector<4xf32>\n%w = arith.negf %v : vector<4xf32>\n",
        "in a kernel on tiles",
    ),
    "thread": ("%r = arith.addi %t, %c0 : index\n", "number of a thread"),
    "barrier": ("gpu.barrier\n", "'gpu.barrier' in a kernel whose tiles"),
    "encoding": (
        '%r = "lego.iota"() {dim = 0 : i64} : () -> tensor<4xi32, 3 : i64>\n',
        "that is no layout",
    ),
    "layout of other shape": (
        '%r = "lego.iota"() {dim = 0 : i64} : () -> '
        'tensor<8xi32, #lego.layout<"OrderBy(Row(4, 32, 1)).GroupBy([4, 32])">>\n',
        "which is not the tile",
    ),
    "layout of other warps": (
        '%r = "lego.iota"() {dim = 0 : i64} : () -> '
        'tensor<64xi32, #lego.layout<"OrderBy(Row(2, 32, 1)).GroupBy([64])">>\n',
        "is by 2 warps, the kernel has 4",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_where_it_is(name: str) -> None:
    body, message = WRONG[name]
    text = module(body)
    error = refusal(text)
    assert re.search(message, f"{error.message} {error.hint}"), str(error)
    assert error.location is not None
    written = text.splitlines()[error.location.line - 1]
    assert written.strip() in body or "bb0" in written, str(error)


def test_a_tile_comes_from_the_kernel() -> None:
    text = module(f"%r = arith.negf %T : {T}\n").replace("%I: memref", f"%T: {T}, %I: memref")
    assert "not made in the kernel" in str(refusal(text))


A = "OrderBy(Row(4, 32, 1)).GroupBy([4, 32])"
B = "OrderBy(Row(4, 32, 1)).OrderBy(RegP([4, 32], [0, 1])).GroupBy([4, 32])"


def test_encodings_are_written_in_canonical_form() -> None:
    kind = f'tensor<4x32xf32, #lego.layout<"{B}">>'
    body = load("x", "X", memref("f32", (4, 32)), kind, "%c0, %c0") + store(
        "x", "X", memref("f32", (4, 32)), kind, "%c0, %c0"
    )
    text = Compilation(Source("tiles.mlir", tile_module({"X": ("f32", (4, 32))}, body))).text(
        "placed"
    )
    assert A in text
    assert B not in text


def test_layouts_belong_together() -> None:
    """The result of a reduction has the quotient layout, and is refused in another one."""
    quotient = "OrderBy(Row(4, 32, 1)).GroupBy([4, 1, 32])"
    other = "OrderBy(Row(4, 32, 1)).OrderBy(RegP([2, 2, 32], [1, 0, 2])).GroupBy([4, 1, 32])"
    for layout, is_right in ((quotient, True), (other, False)):
        tile = f'tensor<4x32xf32, #lego.layout<"{A}">>'
        row = f'tensor<4x1xf32, #lego.layout<"{layout}">>'
        body = (
            load("x", "X", memref("f32", (4, 32)), tile, "%c0, %c0")
            + f'%r = "lego.reduce"(%x) {{kind = "add", dim = 1 : i64}} : ({tile}) -> {row}\n'
            + store("r", "Y", memref("f32", (4, 1)), row, "%c0, %c0")
        )
        text = tile_module({"X": ("f32", (4, 32)), "Y": ("f32", (4, 1))}, body)
        if is_right:
            Compilation(Source("tiles.mlir", text)).text("placed")
        else:
            assert "fits the others" in str(refusal(text))
