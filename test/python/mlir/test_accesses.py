"""Wrong loads and stores: the error stands at the operation and shows both sides of the mistake."""

from __future__ import annotations

import pytest

from lego_mlir.compiler.driver import Compilation
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source

ROW = 'layout = #lego.layout<"OrderBy(Row(8, 64))">'
TILED = 'layout = #lego.layout<"OrderBy(Row(10)).TileBy([3], [4])">'


def lowered(operation: str, arguments: str) -> str:
    text = f"func.func @f({arguments}) {{\n  {operation}\n  return\n}}\n"
    return Compilation(Source("t.mlir", text)).text("index")


@pytest.mark.parametrize(
    ("operation", "says", "hint"),
    [
        (
            f'%v = "lego.load"(%a, %i) {{{ROW}, slice = array<i64: 1>}} '
            ": (memref<512xf32>, index) -> vector<32xf32>",
            "vector<32xf32> through a slice of type vector<64xf32>",
            "sizes of the whole dimensions",
        ),
        (
            f'%v = "lego.load"(%a, %i) {{{ROW}, slice = array<i64: 1>}} '
            ": (memref<512xf32>, index) -> vector<64xf16>",
            "vector<64xf16> through a slice of type vector<64xf32>",
            "buffer's elements",
        ),
        (
            f'%v = "lego.load"(%a, %i, %i) {{{ROW}}} '
            ": (memref<512xf32>, index, index) -> vector<64xf32>",
            "vector<64xf32> through a buffer of f32",
            "slice = array<i64: 1>",
        ),
        (
            f'%v = "lego.load"(%a, %i) {{{ROW}, slice = array<i64: 2>}} '
            ": (memref<512xf32>, index) -> vector<64xf32>",
            "has the dimensions 0 to 1",
            "in order",
        ),
        (
            f'%v = "lego.load"(%a) {{{ROW}, slice = array<i64: 1, 0>}} '
            ": (memref<512xf32>) -> vector<64x8xf32>",
            "slice is array<i64: 1, 0>",
            "in order",
        ),
        (
            f'%v = "lego.load"(%a, %i) {{{ROW}, slice = "all"}} '
            ": (memref<512xf32>, index) -> vector<64xf32>",
            'slice is "all"',
            "array<i64",
        ),
        (
            f'%v = "lego.load"(%a) {{{ROW}, slice = array<i64: 1>}} '
            ": (memref<512xf32>) -> vector<64xf32>",
            "got 0 indices, its layout .* takes 1 \\(8\\)",
            "one index operand a dimension",
        ),
        (
            f'"lego.mask"(%i) {{{ROW}}} : (index) -> i1',
            "got 1 index, its layout .* takes 2",
            "one index operand a dimension",
        ),
        (
            '%v = "lego.load"(%a) {layout = #lego.layout<"OrderBy(Row(2048))">, '
            "slice = array<i64: 0>} : (memref<512xf32>) -> vector<2048xf32>",
            "2048 elements are more than the 1024",
            "tensors instead of vectors",
        ),
        (
            '%v = "lego.load"(%a, %i) {layout = #lego.layout<"OrderBy(Row(N))">, '
            "slice = array<i64: 0>} : (memref<512xf32>, index) -> vector<8xf32>",
            r"sizes \[N\]: a vector has known sizes",
            "lego.sizes",
        ),
        (
            f'%v = "lego.load"(%a, %i, %i) {{{TILED}, other = 0 : i32}} '
            ": (memref<512xf32>, index, index) -> f32",
            "other is 0 : i32, the buffer's elements are f32",
            "other = 1.0 : f32",
        ),
        (
            f'%v = "lego.load"(%c, %i, %i) {{{TILED}}} '
            ": (memref<16xcomplex<f32>>, index, index) -> complex<f32>",
            "no 0 of type complex<f32>",
            "other",
        ),
        (
            '%c9 = arith.constant 9 : index\n  %v = "lego.apply"(%c9, %c9) '
            f"{{{ROW}}} : (index, index) -> index",
            "index 0 of .* is out of range: 9",
            "",
        ),
        (
            '%c2 = arith.constant 2 : index\n  %v = "lego.apply"(%c2, %c2) '
            f"{{{TILED}}} : (index, index) -> index",
            r"coordinate 10 in dimension 0 is outside of the tensor \[10\]",
            "mask",
        ),
    ],
)
def test_a_wrong_access_is_an_error_at_its_operation(operation: str, says: str, hint: str) -> None:
    with pytest.raises(LegoError, match=says) as caught:
        lowered(operation, "%a: memref<512xf32>, %c: memref<16xcomplex<f32>>, %i: index")
    assert caught.value.location is not None
    assert caught.value.location.line in (2, 3)
    assert hint in (caught.value.hint or "")


def test_a_type_without_zero_is_loaded_where_nothing_is_padded() -> None:
    assert "memref.load" in lowered(
        '%v = "lego.load"(%c, %i, %i) {layout = #lego.layout<"OrderBy(Row(4, 4))">} '
        ": (memref<16xcomplex<f32>>, index, index) -> complex<f32>\n"
        '  "lego.store"(%v, %c, %i, %i) {layout = #lego.layout<"OrderBy(Row(4, 4))">} '
        ": (complex<f32>, memref<16xcomplex<f32>>, index, index) -> ()",
        "%c: memref<16xcomplex<f32>>, %i: index",
    )


@pytest.mark.parametrize("value", ["12 : i64", "0 : i64", '"wide"'])
def test_a_wrong_alignment_is_an_error(value: str) -> None:
    with pytest.raises(LegoError, match=r"lego\.alignment is a power of two in bytes, not"):
        lowered("", f"%a: memref<512xf32> {{lego.alignment = {value}}}")


def test_an_argument_states_its_alignment() -> None:
    store = (
        "%v = arith.constant dense<1.0> : vector<64xf32>\n"
        f'"lego.store"(%v, %a, %i) {{{ROW}, slice = array<i64: 1>}} '
        ": (vector<64xf32>, memref<512xf32>, index) -> ()"
    )
    signature = "%a: memref<512xf32> {lego.alignment = 8 : i64}, %i: index"
    assert "{alignment = 8 : i64}" in lowered(store, signature)
    assert "alignment" not in lowered(store, "%a: memref<512xf32>, %i: index")


REPEATED = "OrderBy(Row(8)).Window([8, 3], (x, i) -> (x + i - 1), zero)"
PADDED = "OrderBy(Row(4, 5)).Window([4, 4])"


@pytest.mark.parametrize(
    ("operation", "says", "hint"),
    [
        (
            f'"lego.store"(%v, %a, %i, %i) {{layout = #lego.layout<"{REPEATED}">}} '
            ": (f32, memref<512xf32>, index, index) -> ()",
            r"'lego\.store' stores through a window: .*the same element at \[0, 1\] and \[1, 0\]",
            "for loads",
        ),
        (
            f'%o = "lego.atomic"(%v, %a, %i, %i) {{layout = #lego.layout<"{REPEATED}">, '
            'kind = "add"} : (f32, memref<512xf32>, index, index) -> f32',
            r"'lego\.atomic' stores through a window",
            "for loads",
        ),
        (
            f'"lego.check"() {{layout = #lego.layout<"{REPEATED}">, injective}} : () -> ()',
            "has the same element",
            "",
        ),
        (
            f'"lego.check"() {{layout = #lego.layout<"{PADDED}">, bijective}} : () -> ()',
            "is injective, but no bijection: it has 16 elements and 20 offsets",
            "{layout = #L, injective}",
        ),
        (
            f'%x, %y = "lego.inv"(%i) {{layout = #lego.layout<"{PADDED}">}} '
            ": (index) -> (index, index)",
            "no index belongs to an offset",
            "layout.base",
        ),
    ],
)
def test_what_a_window_cannot_do_is_an_error_at_its_operation(
    operation: str, says: str, hint: str
) -> None:
    with pytest.raises(LegoError, match=says) as caught:
        lowered(operation, "%a: memref<512xf32>, %i: index, %v: f32")
    assert caught.value.location is not None
    assert caught.value.location.line == 2
    assert hint in (caught.value.hint or "")


def test_a_store_through_padded_rows_and_a_check_that_they_are_injective() -> None:
    text = lowered(
        f'"lego.check"() {{layout = #lego.layout<"{PADDED}">, injective}} : () -> ()\n'
        f'  "lego.store"(%v, %a, %i, %i) {{layout = #lego.layout<"{PADDED}">}} '
        ": (f32, memref<512xf32>, index, index) -> ()",
        "%a: memref<512xf32>, %i: index, %v: f32",
    )
    assert "memref.store" in text


def test_an_argument_is_no_window() -> None:
    argument = f'%a: memref<8xf32> {{lego.layout = #lego.layout<"{REPEATED}">}}'
    with pytest.raises(LegoError, match=r"argument 0 of @f has the layout .*, a window"):
        lowered("", argument)
