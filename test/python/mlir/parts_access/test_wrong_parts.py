"""Accesses of parts that do not fit their layout are refused, with both sides of the mistake."""

from __future__ import annotations

import pytest

from lego_mlir.compiler.driver import Compilation
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source

ROW = 'layout = #lego.layout<"OrderBy(Row(8, 64))">'


def lowered(operation: str) -> str:
    text = (
        f"func.func @f(%a: memref<512xf32>, %i: index, %m: i1, %v: vector<4xf32>, "
        f"%h: vector<4xf16>, %w: vector<2x2xf32>) {{\n  {operation}\n  return\n}}\n"
    )
    return Compilation(Source("t.mlir", text)).text("index")


def load(registers: str, kinds: str, mask: str = "", types: str = "") -> str:
    """Return a load of parts."""
    count = 1 if mask else 0
    return (
        f'%p:{kinds.count(",") + 1} = "lego.load_parts"(%a, %i, %i{mask}) {{{ROW}, registers = '
        f"{registers}, operandSegmentSizes = array<i32: 1, 2, {count}>}} : "
        f"(memref<512xf32>, index, index{types}) -> ({kinds})"
    )


def store(registers: str, value: str, kind: str) -> str:
    """Return a store of one part."""
    return (
        f'"lego.store_parts"(%a, %i, %i, {value}) {{{ROW}, registers = {registers}, '
        "operandSegmentSizes = array<i32: 1, 2, 1, 0>} : "
        f"(memref<512xf32>, index, index, {kind}) -> ()"
    )


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        (load("array<i64: 1, 4>", "vector<4xf32>"), "registers is array<i64: 1, 4>"),
        (load("array<i64: 2, 4, 1>", "vector<4xf32>"), "has the dimensions 0 to 1"),
        (load("array<i64: 1, 0, 1>", "vector<4xf32>"), "registers is array<i64: 1, 0, 1>"),
        (load('"all"', "vector<4xf32>"), 'registers is "all"'),
        (load("array<i64: 1, 2048, 1>", "vector<2048xf32>"), "2048 elements a thread"),
        (load("array<i64: 1, 4, 1>", "vector<2xf32>"), "parts of vector<2xf32>, but 4 registers"),
        (load("array<i64: 1, 4, 1>", "vector<4xf16>"), "parts of vector<4xf16>, but 4 registers"),
        (load("array<i64: 1, 4, 1>", "vector<2x2xf32>"), "parts of vector<2x2xf32>"),
        (load("array<i64: 1, 4, 1>", "vector<4xf32>", ", %m", ", i1"), "a mask of i1"),
        (store("array<i64: 1, 4, 1>", "%h", "vector<4xf16>"), "4 registers of f32"),
        (store("array<i64: 1, 2, 1>", "%v", "vector<4xf32>"), "2 registers of f32"),
        (store("array<i64: 1, 4, 1>", "%w", "vector<2x2xf32>"), "parts of vector<2x2xf32>"),
    ],
)
def test_the_error_shows_the_registers_and_the_parts(operation: str, says: str) -> None:
    with pytest.raises(LegoError) as e:
        lowered(operation)
    assert says in str(e.value)
    assert e.value.location is not None
    assert e.value.hint


def test_parts_that_fit_are_lowered() -> None:
    assert "memref.store" in lowered(store("array<i64: 1, 4, 1>", "%v", "vector<4xf32>"))
