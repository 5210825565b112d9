"""Each step over tiles is checked: passes that are wrong are named, and right ones are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tile_modules import load, memref, store, tile_module

from lego_mlir import cli
from lego_mlir.compiler import tile_stages
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.step_check import compared
from lego_mlir.step_checks import check_each_step

T, ROW = "tensor<4x256xf32>", "tensor<4x1xf32>"
SIZES = {256: "whole", 200: "padded"}


def softmax(columns: int = 256) -> str:
    """Return a module of the softmax of rows, by powers of two."""
    shape = (4, columns)
    body = (
        load("x", "X", memref("f32", shape), T, "%c0, %c0")
        + f"""
      %m = "lego.reduce"(%x) {{kind = "max", dim = 1 : i64}} : ({T}) -> {ROW}
      %mb = "lego.broadcast"(%m) : ({ROW}) -> {T}
      %d = arith.subf %x, %mb : {T}
      %e = math.exp2 %d : {T}
      %s = "lego.reduce"(%e) {{kind = "add", dim = 1 : i64}} : ({T}) -> {ROW}
      %sb = "lego.broadcast"(%s) : ({ROW}) -> {T}
      %y = arith.divf %e, %sb : {T}
"""
        + store("y", "Y", memref("f32", shape), T, "%c0, %c0")
    )
    return tile_module({"X": ("f32", shape), "Y": ("f32", shape)}, body)


def compilation(text: str, **options: Any) -> Compilation:
    return Compilation(Source("softmax.mlir", text), Options(**options))


@pytest.mark.parametrize("columns", SIZES)
def test_right_steps_are_listed(columns: int) -> None:
    lines = check_each_step(compilation(softmax(columns)), orders=("late",))
    names = [line.partition(":")[0] for line in lines]
    passes = [step.__name__ for step in tile_stages.PLACING]
    assert names == [*passes, "lowering, run in the simulator (late)"]
    assert "every element is the same" in lines[0]


def first(kernel: TileKernel, name: str) -> Any:
    return next(op for op in kernel.operations() if op.name == name)


def swaps_a_kind(kernel: TileKernel) -> None:
    first(kernel, tiles.REDUCE).attributes[tiles.KIND] = ir.StringAttr.get("min")


def forgets_the_mask(kernel: TileKernel) -> None:
    """What fill_invalid would do without selects."""
    kernel.launch.attributes[dialect.FILLED] = ir.UnitAttr.get()


def doubles(kernel: TileKernel) -> None:
    op = first(kernel, dialect.STORE)
    with ir.InsertionPoint(op), op.location:
        op.operands[0] = arith.AddFOp(op.operands[0], op.operands[0]).result


def stores_elsewhere(kernel: TileKernel) -> None:
    op = first(kernel, dialect.STORE)
    with ir.InsertionPoint(op), op.location:
        one = arith.ConstantOp(ir.IndexType.get(), 1).result
        op.operands[2] = one


@pytest.mark.parametrize("wrong", [swaps_a_kind, forgets_the_mask, doubles, stores_elsewhere])
@pytest.mark.parametrize("position", [0, 2])
def test_a_wrong_pass_is_named(
    wrong: Callable[[TileKernel], None], position: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if wrong is forgets_the_mask and position:
        return  # it has been filled then
    passes = [*tile_stages.PLACING]
    passes.insert(position, wrong)
    monkeypatch.setattr(tile_stages, "PLACING", passes)
    monkeypatch.setattr("lego_mlir.compiler.driver.PLACING", passes)
    with pytest.raises(LegoError, match=f"the pass '{wrong.__name__}' changes what") as caught:
        _ = compilation(softmax(200), check_each_step=True).placed
    assert "elements of 'Y' differ, the first at [" in caught.value.message


def test_a_wrong_lowering_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass behind those that the interpreter follows."""
    passes = [doubles, *tile_stages.LOWERING]
    monkeypatch.setattr("lego_mlir.compiler.driver.LOWERING", passes)
    with pytest.raises(LegoError, match="lowering from the passes on, run in the simulator"):
        check_each_step(compilation(softmax()), orders=("late",))


def test_a_pass_that_breaks_the_rules_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(kernel: TileKernel) -> None:
        first(kernel, tiles.REDUCE).attributes[tiles.KIND] = ir.StringAttr.get("mean")

    passes = [*tile_stages.PLACING, breaks]
    monkeypatch.setattr(tile_stages, "PLACING", passes)
    monkeypatch.setattr("lego_mlir.compiler.driver.PLACING", passes)
    with pytest.raises(LegoError, match="a pass of the compiler makes a wrong module"):
        _ = compilation(softmax()).placed
    with pytest.raises(LegoError, match="the pass 'breaks' of the compiler makes a wrong module"):
        _ = compilation(softmax(), check_each_step=True).placed


def test_other_kernels_have_no_such_steps() -> None:
    path = Path(__file__).parents[3] / "docs" / "examples" / "transpose.mlir"
    with pytest.raises(LegoError, match="no kernel on tiles"):
        check_each_step(compilation(path.read_text()))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "softmax.mlir"
    file.write_text(softmax(200))
    assert cli.main([str(file), "--check-each-step"]) == 0
    out = capsys.readouterr().out
    assert out.count("every element is the same") >= len(tile_stages.PLACING)
    assert "lowering, run in the simulator (random): " in out
    with pytest.raises(SystemExit):
        cli.main([str(file), "--check-each-step", "--run"])
    assert "--check-each-step writes no stage" in capsys.readouterr().err


def test_differences_are_relative_to_the_largest_element() -> None:
    want = np.array([1000.0, 1.0, np.nan, np.inf], np.float32)
    differs, error = compared(want, want + np.float32(0.01), 1e-3)
    assert not differs.any()
    assert 0 < error < 2e-5
    for wrong in ([1002.0, 1, np.nan, np.inf], [1000, 1, 0, np.inf], [1000, 1, np.nan, -np.inf]):
        differs, _ = compared(want, np.array(wrong, np.float32), 1e-3)
        assert differs.sum() == 1
    differs, _ = compared(np.array([1, 2]), np.array([1, 3]), 1.0)
    assert differs.tolist() == [False, True]


ROWS_PAST_THE_END = (
    {"X": ("f32", (1, 2)), "Y": ("f32", (1, 1, 2))},
    load("x", "X", memref("f32", (1, 2)), "tensor<4x2xf32>", "%c0, %c0")
    + '"lego.store"(%x, %Y, %b, %c0, %c0) {layout = #Y, slice = array<i64: 1, 2>}'
    " : (tensor<4x2xf32>, memref<2xf32>, index, index, index) -> ()\n",
)
SCATTER_BY_ONE_COPY = (
    {"X": ("i16", (6, 24)), "Y": ("i16", (144,))},
    load("x", "X", memref("i16", (6, 24)), "tensor<6x24xi16>", "%c0, %c0")
    + """
      %flat = "lego.reshape"(%x) : (tensor<6x24xi16>) -> tensor<144xi16>
      %k = "lego.iota"() {dim = 0 : i64} : () -> tensor<144xi32>
      %five = arith.constant dense<5> : tensor<144xi32>
      %size = arith.constant dense<144> : tensor<144xi32>
      %times = arith.muli %k, %five : tensor<144xi32>
      %at = arith.remui %times, %size : tensor<144xi32>
      "lego.scatter"(%flat, %Y, %at) {operandSegmentSizes = array<i32: 1, 1, 1, 0>, layout = #Y}
          : (tensor<144xi16>, memref<144xi16>, tensor<144xi32>) -> ()
""",
)
SPLIT_IN_A_BRANCH = (
    {"X": ("f32", (13,)), "Y": ("f32", (8,))},
    load("x", "X", memref("f32", (13,)), "tensor<16xf32>")
    + """
      %pairs = "lego.reshape"(%x) : (tensor<16xf32>) -> tensor<8x2xf32>
      %p, %q = "lego.split"(%pairs) : (tensor<8x2xf32>) -> (tensor<8xf32>, tensor<8xf32>)
      %is_first = arith.cmpi eq, %b, %c0 : index
      %r = scf.if %is_first -> (tensor<8xf32>) {
        scf.yield %q : tensor<8xf32>
      } else {
        scf.yield %q : tensor<8xf32>
      }
"""
    + store("r", "Y", memref("f32", (8,)), "tensor<8xf32>"),
)
FOUND = {
    "rows past the end": ROWS_PAST_THE_END,
    "scatter by one copy": SCATTER_BY_ONE_COPY,
    "split in a branch": SPLIT_IN_A_BRANCH,
}


@pytest.mark.parametrize("name", FOUND)
def test_what_random_programs_have_found(name: str) -> None:
    tensors, body = FOUND[name]
    check_each_step(compilation(tile_module(tensors, body, warps=1)), orders=("random",))
