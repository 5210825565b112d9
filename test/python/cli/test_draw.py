"""legoc --draw: layouts of the command line and of modules, in files and on stdout; its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from lego_mlir import cli, parse_layout

TRANSPOSE = str(Path(__file__).parents[3] / "docs" / "examples" / "transpose.mlir")
ROW = "OrderBy(Row(2, 3))"


def test_a_layout_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([ROW, "--draw"]) == 0
    assert capsys.readouterr().out == f"{parse_layout(ROW).draw()}\n"


def test_layouts_of_a_module_are_drawn_by_their_names(tmp_path: Path) -> None:
    file = tmp_path / "x.svg"
    assert cli.main([TRANSPOSE, "--draw", "tile", "#rows", "--set", "T=16", "-o", str(file)]) == 0
    tile = parse_layout("OrderBy(GenP([16, 16], swizzle))")
    rows = parse_layout("OrderBy(Row(2, 8))")
    assert file.read_text() == tile.draw().beside(rows.draw()).svg()


MODULE = """\
#own = #lego.layout<"OrderBy(GenP([2, 3], @f, @g))">
func.func private @f(%i: index, %j: index) -> index {
  %c2 = arith.constant 2 : index
  %0 = arith.muli %j, %c2 : index
  %1 = arith.addi %0, %i : index
  return %1 : index
}
func.func private @g(%p: index) -> (index, index) {
  %c2 = arith.constant 2 : index
  %i = arith.remui %p, %c2 : index
  %j = arith.divui %p, %c2 : index
  return %i, %j : index, index
}
func.func @host() {
  "lego.check"() {layout = #own, bijective} : () -> ()
  return
}
"""


def test_permutations_of_the_module_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.mlir").write_text(MODULE)
    assert cli.main([str(tmp_path / "own.mlir"), "--draw"]) == 0
    columns = str(parse_layout("OrderBy(Col(2, 3))").draw()).splitlines()[1:]
    assert capsys.readouterr().out.splitlines()[1:] == columns


def test_all_layouts_of_a_module_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([TRANSPOSE, "--draw", "--cells", "2x2"]) == 0
    head = capsys.readouterr().out.splitlines()[0]
    assert head.count("OrderBy") == 6


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["OrderBy(Row(4, 4)"], "<layout>:1:8: error: '(' is never closed"),
        (["OrderBy(Row(4, M))"], "has sizes without values (M)"),
        ([ROW, "--set", "K=3"], "no layout has a size 'K' to set"),
        ([ROW, "-o", "/nowhere/x.svg"], "/nowhere/x.svg: error: cannot be written"),
        ([ROW, "--access", "OrderBy(Row(4"], "is never closed"),
        (["nothing.mlir"], "cannot read the input"),
        ([TRANSPOSE, "X"], "the module has no layout 'X'\nhint: its layouts are: blocks,"),
        ([TRANSPOSE, "--set", "Z=1"], "the module has no size 'Z' to set"),
    ],
)
def test_an_error_says_what_is_wrong(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*arguments, "--draw"]) == 1
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error


def test_a_module_without_layouts_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.mlir").write_text("module {}\n")
    assert cli.main([str(tmp_path / "empty.mlir"), "--draw"]) == 1
    assert "the module has no layouts to draw" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [ROW, "--draw", "--run"],
        [ROW, "--draw", "--emit=ptx"],
        [ROW, "--draw", "--schedule=cp_async"],
        [ROW, "--by=tile"],
        [ROW, "--element=4"],
        [ROW, "--draw", "--cells", "0x3"],
        [ROW, "--draw", "--vector", "0"],
    ],
)
def test_options_that_exclude_each_other_are_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as info:
        cli.main(arguments)
    assert info.value.code == 2
