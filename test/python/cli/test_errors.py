"""legoc's errors for bad input: one paragraph with the location and a hint, and nothing else."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lego_mlir import cli

EXAMPLE = (Path(__file__).parents[3] / "docs" / "examples" / "transpose.mlir").read_text()
SMALL = EXAMPLE.replace("1024", "64")
TILE = "memref<?xf32, #gpu.address_space<workgroup>>"


@pytest.fixture
def legoc(capsysbinary: Any, monkeypatch: Any, tmp_path: Path) -> Any:
    """Run legoc in an empty folder: its status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str | bytes = "") -> SimpleNamespace:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        try:
            status = cli.main(arguments)
        except SystemExit as e:
            status = int(e.code or 0)
        captured = capsysbinary.readouterr()
        return SimpleNamespace(status=status, out=captured.out, err=captured.err.decode())

    return run


def edited(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new, 1)


def check(answer: SimpleNamespace, says: str, *, status: int = 1) -> None:
    """One paragraph: `[location: ]error: what`, the line and a caret, `hint: …`; no more."""
    assert answer.status == status, answer.err
    assert answer.out == b""
    first, *rest = answer.err.splitlines()
    assert re.search(says, answer.err), answer.err
    assert "error: " in first
    assert "Traceback" not in answer.err
    assert "has a bug" not in answer.err
    assert "\n\n" not in answer.err
    assert all(line.startswith(("  ", "hint: ")) for line in rest), answer.err


def pointed_at(err: str) -> str:
    """The text that the caret of an error stands under, to the end of its line."""
    _, row, caret, *_ = err.splitlines()
    assert caret.strip() == "^"
    return row[caret.index("^") :]


# (name, what to replace in the example, by what, what the error says, what the caret points at)
LAYOUT_ERRORS = [
    ("bracket left open", "Row(N, N)).TileBy", "Row(N, N).TileBy",
     r"<stdin>:11:33: error: '\(' is never closed", "(Row(N, N).TileBy"),
    ("wrong bracket", "[T, T])", "[T, T))",
     r"<stdin>:11:69: error: '\)' does not match the '\['", "))"),
    ("bracket too many", "OrderBy(Row(R, T))", "OrderBy(Row(R, T)))",
     r"<stdin>:9:44: error: '\)' closes nothing", ')">'),
    ("unknown permutation", "swizzle", "swizle",
     r"no permutation 'swizle'.*\n.*\n.*\nhint: did you mean swizzle\?", "swizle"),
    ("misspelt block", "Row(R, T)", "Rwo(R, T)",
     r"<stdin>:9:34: error: expected a block.*\n.*\n.*\nhint: did you mean Row\?", "Rwo"),
    ("a character that no layout has", "Row(R, T)", "Row(R, é)",
     r"<stdin>:9:41: error: unexpected character 'é'", "é"),
    ("unknown function", "swizzle", "@f, @f_inv",
     r"there is no function @f", "f, @f_inv"),
    ("no permutation", "Row(R, T)", "RegP([R, T], [0, 2])",
     r"RegP: \[0, 2\] is not a permutation of \[0, 1\]", "RegP"),
    ("sizes whose products differ", "[T, T])", "[T, R])",
     r"1048576 elements.* 262144\n.*\n.*\nhint: to cover .* the sizes are N = 1024, T = 32, R = 8",
     "TileBy"),
    ("not a layout", "OrderBy(Row(R, T))", "Ordered(Row(R, T))",
     r"expected OrderBy, TileOrderBy, GroupBy, TileBy or Window, found 'Ordered'", "Ordered"),
    ("empty", "OrderBy(Row(R, T))", "",
     r"<stdin>:9:26: error: expected OrderBy", '">'),
    ("no square", "GenP([T, T], swizzle)", "GenP([T, R], antidiagonal)",
     r"antidiagonal permutes a square tile, not \[32, 8\]", "GenP"),
    ("size zero", "Row(R, T)", "Row(R - 8, T)",
     r"Row: a size must be at least 1, not 0", "Row"),
    ("size below zero", "Row(R, T)", "Row(R - 9, T)",
     r"Row: a size must be at least 1, not -1", "Row"),
    ("size that is no integer", "Row(R, T)", "Row(2.5, T)",
     r"expected '\)' or ',' after an item, found '\.'", ".5"),
    ("a permutation that repeats", "Row(R, T)", "RegP([R, T], [0, 0])",
     r"RegP: \[0, 0\] is not a permutation of \[0, 1\]", "RegP"),
    ("a permutation of another rank", "Row(R, T)", "RegP([R, T], [0, 2, 1])",
     r"RegP: 2 sizes but a permutation of 3: \[8, 32\], \[0, 2, 1\]", "RegP"),
    ("levels of different ranks", "[N/T, N/T], [T, T]", "[N/T, N/T], [T]",
     r"TileBy.*every level needs the same number of dimensions, here 2, 1", "TileBy"),
    ("division by zero", "Row(R, T)", "Row(R/0, T)", r"<stdin>:9:39: error: .* by zero", "/0"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "says", "at"),
    [pytest.param(*case, id=name) for name, *case in LAYOUT_ERRORS],
)
def test_an_error_in_a_layout_points_into_its_text(
    legoc: Any, old: str, new: str, says: str, at: str
) -> None:
    answer = legoc("-", stdin=edited(EXAMPLE, old, new))
    check(answer, says)
    assert pointed_at(answer.err).startswith(at)


APPLY = '"lego.apply"(%step, %row) {layout = #rows} : (index, index)'
INV = '%m, %n = "lego.inv"(%bid) {layout = #blocks} : (index) -> (index, index)'

# (name, what to replace in the example, by what, what the error says, what the caret points at)
OPERATION_ERRORS = [
    ("unknown operation", "gpu.barrier", "gpu.barier",
     r"<stdin>:37:7: error: custom op 'gpu.barier' is unknown", "gpu.barier"),
    ("unknown dialect", "gpu.barrier", '"foo.bar"() : () -> ()',
     r"unregistered dialect\n.*\n.*\nhint: legoc knows lego and", "() : ()"),
    ("unknown lego operation", '"lego.apply"', '"lego.aply"',
     r"unregistered operation 'lego.aply'.*\n.*\n.*\nhint: lego has: apply, inv,", '"lego.aply"'),
    ("unknown lego attribute", "#lego.layout", "#lego.layot",
     r"expected dynamic attribute\n.*\n.*\nhint: .*#lego.layout", "layot"),
    ("too few indices", APPLY, '"lego.apply"(%step) {layout = #rows} : (index)',
     r"'lego.apply' got 1 index, its layout 'OrderBy\(Row\(4, 8\)\)' takes 2 \(4, 8\)", '"lego.a'),
    ("too many indices", APPLY,
     '"lego.apply"(%step, %row, %row) {layout = #rows} : (index, index, index)',
     r"'lego.apply' got 1 operand for symbols, but there are none", '"lego.apply"'),
    ("too many results", INV,
     '%m, %n, %o = "lego.inv"(%bid) {layout = #blocks} : (index) -> (index, index, index)',
     r"'lego.inv' has 3 results, its layout .* 2 dimensions", '"lego.inv"'),
    ("no such dimension", "dim = 0", "dim = 2",
     r"'lego.dim': dimension 2 is not in \[0, 2\)", '"lego.dim"'),
    ("a symbol without a value", "OrderBy(Row(R, T))", "OrderBy(Row(Q, T))",
     r"got 0 operands for the symbols Q of .*\n.*\n.*\nhint: .*lego.sizes", '"lego.size"'),
    ("a divisor without a value", ", R = 8", "",
     r"the size R in '32 / R' has no value\n.*\n.*\nhint: give it: --set R=.*are T = 32", "/R"),
    ("shape and layout", "%b: memref<1024x1024xf32>", "%b: memref<512x1024xf32>",
     r"expects different type", "%b"),
    ("layout of a number", "@transpose(", "@transpose(%x: index {lego.layout = #A}, ",
     r"argument 0 of @transpose has a layout but is no memref", "func.func"),
    ("element type", "index, index, index, index) -> f32\n", "index, index, index, index) -> f16\n",
     r"expects different type than prior uses: 'f32' vs 'f16'", "%v"),
    ("another element type", "%v, %tile, %i, %col) {layout = #tile}\n            : (f32,",
     "%step, %tile, %i, %col) {layout = #tile}\n            : (index,",
     r"'lego.store' of index through a buffer of f32\n.*\n.*\nhint: convert", '"lego.store"'),
    ("larger than the buffer", '%i, %col) {layout = #B}',
     '%i, %col) {layout = #lego.layout<"OrderBy(Row(64, 64, 32, 32))">}',
     r"has 4194304 elements, the buffer memref<1024x1024xf32> only 1048576", '"lego.store"'),
    ("alloc outside of a kernel", "%c0 = arith",
     f'%t = "lego.alloc"() {{layout = #tile}} : () -> {TILE}\n    %c0 = arith',
     r"'lego.alloc' stands outside of a kernel", '"lego.alloc"'),
    ("alloc of no known size", "GenP([T, T], swizzle)", "Row(Q, Q)",
     r"'lego.alloc' needs a layout of known size, .* has symbols \(Q\)", '"lego.alloc"'),
    ("alloc in global memory", '%tile = "lego.alloc"() {layout = #tile}',
     '%x = "lego.alloc"() {layout = #tile} : () -> memref<?xf32, 1>\n'
     '      %tile = "lego.alloc"() {layout = #tile}',
     r"'lego.alloc' in the memory space 1 : i64\n.*\n.*\nhint: ", '"lego.alloc"'),
    ("more elements than can be counted", "OrderBy(GenP([T, T], swizzle))",
     "OrderBy(Row(2147483648, 4294967296))",
     r"a buffer for 'OrderBy\(Row\(2147483648, 4294967296\)\)' has 9223372036854775808 elements",
     '"lego.alloc"'),
    ("sizes are no dictionary", "lego.sizes = {N = 1024, T = 32, R = 8}", "lego.sizes = [1024]",
     r"lego.sizes is a dictionary, not", "module"),
    ("a size is no integer", "T = 32", 'T = "32"',
     r"lego.sizes: T is a positive integer, not '\"32\"'", "module"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "says", "at"),
    [pytest.param(*case, id=name) for name, *case in OPERATION_ERRORS],
)
def test_an_error_in_the_module_has_its_line(
    legoc: Any, old: str, new: str, says: str, at: str
) -> None:
    answer = legoc("-", stdin=edited(EXAMPLE, old, new))
    check(answer, says)
    assert re.match(r"<stdin>:\d+:\d+: error: ", answer.err)
    assert pointed_at(answer.err).startswith(at)


def test_a_module_that_does_not_parse(legoc: Any) -> None:
    answer = legoc("-", stdin="func.func @f( {\n")
    check(answer, r"<stdin>:1:14: error: expected")
    assert pointed_at(answer.err) == " {"


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        ('%c = arith.constant 100 : index\n  %0 = "lego.size"(%c) '
         '{layout = #lego.layout<"OrderBy(Row(M)).TileBy([M/128], [128])">} : (index) -> index',
         "M is 100 here, but its layout .* says that 128 divides it"),
        ('%c = arith.constant 0 : index\n  %0 = "lego.size"(%c) '
         '{layout = #lego.layout<"OrderBy(Row(M))">} : (index) -> index',
         "Row: a size must be at least 1, not 0"),
        ('%m = memref.alloca() : memref<8x8xf32, strided<[16, 1]>>\n'
         '  %0 = "lego.load"(%m, %i, %i) {layout = #lego.layout<"OrderBy(Row(8, 8))">} '
         ': (memref<8x8xf32, strided<[16, 1]>>, index, index) -> f32',
         "strided<.* are not known to lie one after another"),
        ('%c = arith.constant 9 : index\n  %0 = "lego.apply"(%i, %c) '
         '{layout = #lego.layout<"OrderBy(Row(8, 8))">} : (index, index) -> index',
         "out of range: 9 is not in .0, 8."),
    ],
    ids=["fact", "zero", "strided", "out of range"],
)  # fmt: skip
def test_an_operation_that_cannot_be_lowered(legoc: Any, operation: str, says: str) -> None:
    answer = legoc("-", stdin=f"func.func @f(%i: index) {{\n  {operation}\n  return\n}}\n")
    check(answer, rf"<stdin>:[234]:\d+: error: .*({says})")


def test_functions_that_permute_nothing(legoc: Any) -> None:
    module = """
func.func @f(%i: index, %j: index) -> index {
  return %i : index
}
func.func @f_inv(%x: index) -> (index, index) {
  return %x, %x : index, index
}
func.func @g(%i: index, %j: index) -> index {
  %0 = "lego.apply"(%i, %j) {layout = #lego.layout<"OrderBy(GenP([4, 4], @f, @f_inv))">}
      : (index, index) -> index
  return %0 : index
}
"""
    check(legoc("-", stdin=module), r"<stdin>:9:8: error: .* is no permutation: element \[0, 0\]")
    work = edited(module, "return %i", "%0 = memref.alloca() : memref<4xf32>\n  return %i")
    check(legoc("-", stdin=work), r"<stdin>:3:8: error: 'memref.alloca' cannot stand in the func")


FUNCTIONS = """
func.func @f(%i: index, %j: index) -> index {
  %c8 = arith.constant 8 : index
  %0 = arith.muli %i, %c8 : index
  %1 = arith.addi %0, %j : index
  return %1 : index
}
func.func @f_inv(%x: index) -> (index, index) {
  %c8 = arith.constant 8 : index
  %i = arith.divui %x, %c8 : index
  %j = arith.remui %x, %c8 : index
  return %i, %j : index, index
}
func.func @swapped(%x: index) -> (index, index) {
  %c8 = arith.constant 8 : index
  %i = arith.divui %x, %c8 : index
  %j = arith.remui %x, %c8 : index
  return %j, %i : index, index
}
func.func @g(%n: index) {
  OPERATION
  return
}
"""
CHECK = '"lego.check"() {layout = #lego.layout<"OrderBy(%s)">, bijective} : () -> ()'
CHECK_N = '"lego.check"(%%n) {layout = #lego.layout<"OrderBy(%s)">, bijective} : (index) -> ()'


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        (CHECK % "GenP([4, 8], @f, @swapped)",
         r"GenP\(\[4, 8\], @f, @swapped\): the functions do not undo one another: element "
         r"\[0, 1\] goes to position 1, which comes back as \[1, 0\]\n"),
        (CHECK % "GenP([8, 4], @f, @f_inv)",
         r"is no permutation: element \[4, 0\] goes to position 32, outside of the tile's 32\n"),
        (CHECK % "GenP([4, 9], @f, @f_inv)",
         r"is no permutation: element \[0, 8\] goes to position 8, as element \[1, 0\] does\n"),
        (CHECK_N % "Row(2), GenP([8, n], @f, @f_inv)", r"is no permutation: .*, where n = \d+\n"),
        (CHECK_N % "GenP([8, n], @f, @missing)", r"there is no function @missing\n"),
        (CHECK % "GenP([4, n], @f, @f_inv)", r"got 0 operands for the symbols n of its layout"),
        (CHECK.replace(", bijective", "") % "Row(4)", r"'lego.check' asks for nothing\n"),
        (CHECK.replace("bijective", "nice") % "Row(4)", r"asks for nice\n.*\n.*\nhint: .*bijec"),
        (CHECK.replace("bijective", "bijective = 3") % "Row(4)", r"asks for bijective\n"),
    ],
    ids=["inverse", "outside", "collision", "symbolic", "no function", "unbound", "nothing",
         "another property", "no unit attribute"],
)  # fmt: skip
def test_a_check_that_fails(legoc: Any, operation: str, says: str) -> None:
    answer = legoc("-", stdin=edited(FUNCTIONS, "OPERATION", operation))
    check(answer, r"<stdin>:21:\d+: error: ")
    check(answer, says)
    assert "\nhint: " in answer.err


FLIP = """
module attributes {lego.sizes = {m = 4}} {
  func.func @flip(%i: index) -> index {
    %c1 = arith.constant 1 : index
    %0 = arith.xori %i, %c1 : index
    return %0 : index
  }
  func.func @g(%i: index, %n: index) -> index {
    OPERATION
    %0 = "lego.apply"(%i, %n) {layout = #lego.layout<"OrderBy(GenP([2*n], @flip, @flip))">}
        : (index, index) -> index
    return %0 : index
  }
}
"""


def test_a_check_that_stays_unknown(legoc: Any) -> None:
    """An error of lego.check, which says what to do, and of no other operation."""
    answer = legoc("-", stdin=FLIP.replace("OPERATION", CHECK_N % "GenP([2*n], @flip, @flip)"))
    check(answer, r"<stdin>:9:5: error: 'lego.check': whether GenP.* @flip\) .* stays unknown: ")
    assert "hint: give its sizes values, in lego.sizes or by --set" in answer.err
    assert legoc("-", stdin=FLIP.replace("OPERATION", "")).status == 0
    known = CHECK % "GenP([2*m], @flip, @flip)"
    assert legoc("-", stdin=FLIP.replace("OPERATION", known)).status == 0


# Files.
def test_an_input_that_is_not_there(legoc: Any, tmp_path: Path) -> None:
    check(legoc("none.mlir"), r"^none.mlir: error: cannot read .*\nhint: give a .mlir file")
    check(legoc("none.mlir", "--run"), r"^none.mlir: error: cannot read the input: No such file")
    check(legoc("."), r"^\.: error: cannot read the input: Is a directory")
    check(legoc(".", "--run"), r"^\.: error: cannot read the input: Is a directory")


@pytest.mark.parametrize("options", [[], ["--run"], ["--check-each-step"]])
def test_a_python_program_is_run_by_python(legoc: Any, tmp_path: Path, options: list[str]) -> None:
    program = tmp_path / "kernel.py"
    program.write_text("import lego_mlir as lg\n")
    answer = legoc(str(program), *options)
    check(answer, r"kernel.py: error: this is a Python program.*\nhint: run it by python")


def test_an_input_that_is_no_text(legoc: Any, tmp_path: Path) -> None:
    (tmp_path / "b.mlir").write_bytes(bytes(range(256)))
    check(legoc("b.mlir"), r"^b.mlir: error: the input is no text\nhint: ")
    check(legoc("-", stdin=b"\xff\xfe"), r"^<stdin>: error: the input is no text\nhint: ")
    (tmp_path / "b.lego").write_bytes(b"PK\x03\x04 and no more")
    check(legoc("b.lego"), r"^b.lego: error: the input is a bundle")
    check(legoc("b.lego", "--run"), r"^b.lego: error: this file is no lego-mlir artifact\nhint: ")


def test_a_byte_order_mark(legoc: Any) -> None:
    assert legoc("-", stdin="\ufeff" + SMALL).out == legoc("-", stdin=SMALL).out != b""


def test_an_output_that_cannot_be_written(legoc: Any, tmp_path: Path) -> None:
    nowhere = legoc("-", "-o", "no/such/file", stdin=EXAMPLE)
    check(nowhere, r"^no/such/file: error: cannot be written: No such .*\nhint: ")
    check(legoc("-", "-o", ".", stdin=EXAMPLE), r"error: cannot be written: Is a directory\nhint: ")
    assert list(tmp_path.iterdir()) == []


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run legoc in a process of its own, on the example."""
    return subprocess.run(
        [sys.executable, "-m", "lego_mlir.cli", "-", *arguments],
        input=SMALL.encode(),
        stderr=subprocess.PIPE,
        check=False,
        **options,
    )


@pytest.mark.parametrize("arguments", [(), ("--run", "--device=sim")], ids=["emit", "run"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_standard_output_that_is_full_or_closed(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        for options in ({"stdout": full}, {"preexec_fn": lambda: os.close(1)}):
            done = command(*arguments, **options)
            assert done.returncode == 1
            pattern = rb"<stdout>: error: cannot be written: [\w ]+\n"
            assert re.fullmatch(pattern, done.stderr), done.stderr


def test_outputs_that_are_no_plain_files(tmp_path: Path) -> None:
    """What is behind a link is written, and what stands in an open file stays."""
    (tmp_path / "link").symlink_to(tmp_path / "goal")
    assert command("-o", str(tmp_path / "link")).returncode == 0
    text = (tmp_path / "goal").read_bytes()
    assert text
    assert (tmp_path / "link").is_symlink()
    for name in ("/dev/stdout", "/dev/fd/1"):
        with (tmp_path / "log").open("wb") as log:
            log.write(b"before\n")
            log.flush()
            assert command("-o", name, stdout=log).returncode == 0
        assert (tmp_path / "log").read_bytes() == b"before\n" + text
    assert Path("/dev/stdout").is_symlink()


def test_an_interruption_within_a_pass(legoc: Any, monkeypatch: Any) -> None:
    """MLIR makes an error of its own of what Ctrl-C raises; the status tells it all the same."""
    from lego_mlir.compiler import driver

    def pressed(*_: Any, **__: Any) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise RuntimeError("KeyboardInterrupt in a callback") from None

    monkeypatch.setattr(driver, "lower_lego", pressed)
    answer = legoc("-", stdin=SMALL)
    assert (answer.status, answer.out, answer.err) == (130, b"", "legoc: interrupted\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("stage", ["index", "ptx", "cubin", "bundle"])
def test_an_error_leaves_the_output_untouched(legoc: Any, tmp_path: Path, stage: str) -> None:
    (tmp_path / "out").write_text("precious")
    wrong = edited(EXAMPLE, "swizzle", "swizle")
    check(legoc("-", f"--emit={stage}", "-o", "out", stdin=wrong), "swizle")
    check(legoc("-", f"--emit={stage}", "-o", "new", stdin=wrong), "swizle")
    assert (tmp_path / "out").read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


# Options.
def test_an_unknown_target(legoc: Any) -> None:
    check(legoc("-", "--target=sm_12", stdin=EXAMPLE), r"unknown target 'sm_12'\nhint: .*sm_90a")


def test_sizes_to_set(legoc: Any) -> None:
    check(legoc("-", "--set", "X=1", stdin=EXAMPLE), r"no size 'X' to set\nhint: .*N, R, T")
    check(legoc("-", "--set", "T=24", stdin=EXAMPLE), r"24 does not divide 1024(.|\n)*T = 24")
    check(legoc("-", "--set", "N=512", stdin=EXAMPLE), r"1048576 elements, its layout .* 262144")


SCHEDULE = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    %x = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    STEP
    transform.yield
  }
}
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("module { transform.foo }", r"^s.mlir:1:10: error: custom op 'transform.foo' is unknown"),
        ("module { }", r"^s.mlir:1:1: error: the schedule has no named sequence @__transform_main"),
        (SCHEDULE.replace("STEP", "transform.loop.unroll %x {factor = 4} : !transform.any_op"),
         r"^s.mlir:5:5: error: the schedule 's.mlir' failed: failed to unroll"),
        (SCHEDULE.replace("STEP", 'transform.apply_registered_pass "foo" to %x '
                          ": (!transform.any_op) -> !transform.any_op"),
         r"^s.mlir:5:5: error: the pass 'foo' is none of those that may run"),
        ("\x00\xff", r"^s.mlir"),
    ],
    ids=["unparsable", "empty", "failing step", "unknown pass", "binary"],
)  # fmt: skip
def test_a_schedule_that_fails(legoc: Any, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "s.mlir").write_text(text, encoding="latin-1")
    check(legoc("-", "--schedule=s.mlir", "--emit=scheduled", stdin=EXAMPLE), says)


def test_an_unknown_schedule(legoc: Any) -> None:
    answer = legoc("-", "--schedule=nope", "--emit=scheduled", stdin=EXAMPLE)
    check(answer, r"there is no schedule 'nope'.*\nhint: give a file, or one of: .*unroll")


@pytest.mark.parametrize(("old", "new"), [("wgmma", "persistent"), ("hmma", "cp_async")])
def test_the_name_of_an_earlier_version(legoc: Any, old: str, new: str) -> None:
    answer = legoc("-", f"--schedule={old}", "--emit=scheduled", stdin=EXAMPLE)
    check(answer, f"there is no schedule '{old}'\nhint: it is '{new}' now")


@pytest.mark.parametrize(
    ("stage", "pipeline", "says"),
    [
        ("index", "index=builtin.module(foo)",
         r"^<pass pipeline>:1:16: error: the pass 'foo' is none of those that may run"),
        ("index", "index=builtin.module(canonicalise)", r"hint: did you mean canonicalize\?"),
        ("index", "index=foo.bar(cse", r"pipeline 'index' is not understood"),
        ("index", "index=builtin.module(cse", r"pipeline 'index' is not understood"),
        ("index", "index=nofile", r"^nofile: error: the pass pipeline cannot be read.*\nhint: "),
        ("index", "index=builtin.module(${x})", r"wants the value 'x', known are: none"),
        ("ptx", "nvvm=builtin.module(gpu-kernel-outlining)",
         r"^<stdin>:\d+:\d+: error: 'gpu.func' is left after the pass pipeline 'nvvm'"),
        ("llvm", "nvvm=builtin.module(gpu-kernel-outlining)",
         r"^<stdin>:\d+:\d+: error: 'gpu.func' is left after the pass pipeline 'nvvm'"),
        ("ptx", "nvvm=builtin.module(canonicalize)", r"the module has no kernel"),
        ("ptx", "ptx=builtin.module(cse)", r"left no gpu.binary\nhint: "),
    ],
)  # fmt: skip
def test_a_pipeline_that_fails(legoc: Any, stage: str, pipeline: str, says: str) -> None:
    answer = legoc("-", f"--emit={stage}", "--pass-pipeline", pipeline, stdin=EXAMPLE)
    check(answer, says)


def test_a_kernel_of_sizes_that_the_launch_knows_is_compiled(legoc: Any) -> None:
    assert b".visible .entry" in legoc("-", "--emit=ptx", stdin=SMALL.replace("64x64", "?x?")).out


def test_a_schedule_runs_unless_another_stage_is_emitted(legoc: Any) -> None:
    scheduled = legoc("-", "--schedule=unroll", stdin=SMALL)
    assert scheduled.status == 0
    assert b"scf.for" not in scheduled.out
    assert b"scf.for" in legoc("-", "--schedule=unroll", "--emit=index", stdin=SMALL).out


def test_the_steps_of_a_schedule_that_the_module_names(legoc: Any, tmp_path: Path) -> None:
    named = edited(SMALL, "module attributes {", 'module attributes {lego.schedule = "unroll", ')
    assert legoc("-", "--emit=scheduled", "--keep", "steps", stdin=named).status == 0
    assert (tmp_path / "steps" / "00-match.mlir").is_file()
    check(legoc("-", "--param", "x=1", stdin=named), "'unroll' has no parameter 'x'")
    for option in (("--param", "x=1"), ("--keep", "steps")):
        check(
            legoc("-", *option, stdin=SMALL),
            rf"^<stdin>: error: {option[0]} .* names no schedule\nhint: add --schedule=NAME",
        )


# Running.
HOST_WORK = """%z = memref.load %a[%c0, %c0] : memref<64x64xf32>
    memref.store %z, %a[%c0, %c0] : memref<64x64xf32>
    %c1 = arith"""
START, END = SMALL.index("  func.func"), SMALL.rindex("}")


@pytest.mark.parametrize("stage", ["ptx", "cubin", "bundle"])
def test_too_many_threads_are_an_error_from_stage_ptx_on(legoc: Any, stage: str) -> None:
    large = edited(SMALL, "R = 8", "R = 32").replace("T = 32", "T = 64")
    answer = legoc("-", f"--emit={stage}", "-o", "out", stdin=large)
    check(answer, r"<stdin>:24:5: error: a CTA of 2048×1×1 has 2048 threads; a GPU takes at most")


OPEN = """gpu.module @m {
  gpu.func @k(%a: memref<32xf32>) workgroup(%s: memref<20000xf32, #gpu.address_space<workgroup>>)
      kernel {
    %x = gpu.thread_id x
    %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %i = memref.load %d[%x] : memref<?xi8, #gpu.address_space<workgroup>>
    %f = arith.sitofp %i : i8 to f32
    memref.store %f, %s[%x] : memref<20000xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %v = memref.load %s[%x] : memref<20000xf32, #gpu.address_space<workgroup>>
    memref.store %v, %a[%x] : memref<32xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("stage", ["ptx", "cubin"])
def test_static_shared_memory_beyond_48_kib_is_an_error_from_stage_ptx_on(
    legoc: Any, stage: str
) -> None:
    answer = legoc("-", f"--emit={stage}", "-o", "out", stdin=OPEN)
    check(answer, r"<stdin>:2:3: error: the kernel declares 80000 bytes of static shared memory")


def test_hints_about_stages_are_in_the_syntax_of_legoc(legoc: Any) -> None:
    matmul = (Path(__file__).parents[3] / "docs" / "examples" / "matmul.mlir").read_text()
    options = ("-", "--schedule=cp_async", "--emit=scheduled", "--param")
    answer = legoc(*options, "stages=1", stdin=matmul)
    check(answer, r"hint: --param stages=2\b")
    assert legoc(*options, "stages=2", stdin=matmul).status == 0


def test_a_long_line_is_shown_around_the_error(legoc: Any) -> None:
    long = "Row(2)." * 500
    answer = legoc("-", stdin=f'module attributes {{a = #lego.layout<"{long}">, b = "}}\n')
    assert answer.status == 1
    assert all(len(line) < 300 for line in answer.err.splitlines()[1:]), answer.err
    line, caret = answer.err.splitlines()[1:3]
    assert "…" in line
    assert caret.strip() == "^"
    assert len(caret) <= len(line) + 1


# (name, module, what the error says)
RUN_ERRORS = [
    ("host work", edited(SMALL, "%c1 = arith", HOST_WORK),
     r"<stdin>:19:10: error: a host function only launches kernels; 'memref.load' cannot run here"),
    ("two host functions",
     SMALL[:END] + SMALL[START:END].replace("@transpose", "@again") + "}\n",
     r"<stdin>:\d+:3: error: .* this one has: @transpose, @again"),
    ("no kernel", "module {}\n", r"<stdin>:1:1: error: .* this one has: none"),
    ("unknown reference", edited(SMALL, '"transpose"', '"sort"'),
     r"<stdin>:\d+:\d+: error: unknown reference 'sort'\n.*sort.*\n *\^\nhint: known references: "),
    ("axes of another rank", edited(SMALL, '"transpose"', '"permute(0, 2, 1)"'),
     r"'permute\(0, 2, 1\)' is no order of the tensor's 2 dimensions\nhint: "),
    ("a name that PTX has not", edited(SMALL, "@transpose", '@"größe"'),
     r"<stdin>:24:5: error: the name 'größe_kernel' cannot stand in PTX\n"),
    ("a name that begins as no name in PTX", edited(SMALL, "@transpose", '@"3d"'),
     r"<stdin>:24:5: error: the name '3d_kernel' cannot stand in PTX\n"),
    ("a name with a full stop", edited(SMALL, "@transpose", "@a.b"),
     r"<stdin>:24:5: error: the name 'a.b_kernel' cannot stand in PTX\n"),
    ("a type that nothing holds", SMALL.replace("f32", "tf32"),
     r"<stdin>:16:3: error: argument 'a' .* type tf32, which cannot be passed to a kernel\n"),
    ("reference is no name", edited(SMALL, '"transpose"', "3"),
     r"lego.reference is a name in quotes, not '3 : i64'"),
    ("block too large", edited(SMALL, "R = 8", "R = 32").replace("T = 32", "T = 64"),
     r"a CTA of 2048×1×1 has 2048 threads; a GPU takes at most 1024"),
    ("grid too large",
     edited(SMALL, "%gy = %c1", "%gy = %x")
     .replace("%c1 =", "%x = arith.constant 65536 : index\n    %c1 ="),
     r"the grid y of this launch is 65536; a GPU takes 1 to 65535"),
    ("a launch size that is missing",
     edited(SMALL, "@transpose(", "@transpose(%x: index, ").replace("%gx = %grid", "%gx = %x"),
     r"argument 'x' is a scalar of type index and needs a value"),
    ("known sizes", """
module attributes {gpu.container_module} {
  func.func @host() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @k::@f blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @k {
    gpu.func @f() kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      gpu.return
    }
  }
}
""", r"<stdin>:5:5: error: this launch does not have the known_block_size of @f, \[32, 1, 1\]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "says"), [pytest.param(*case, id=name) for name, *case in RUN_ERRORS]
)
def test_a_module_that_cannot_run(legoc: Any, module: str, says: str) -> None:
    check(legoc("-", "--run", "--device=sim", stdin=module), says)


def test_a_type_that_no_register_holds(legoc: Any) -> None:
    answer = legoc("-", "--emit=ptx", stdin=SMALL.replace("f32", "tf32"))
    check(answer, r"<stdin>:\d+:\d+: error: 'memref.\w+' has a value of type tf32, which no")


def test_arrays_that_do_not_fit(legoc: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "shape.npy", np.zeros((3, 3), np.float32))
    np.save(tmp_path / "type.npy", np.zeros((64, 64)))
    (tmp_path / "text.npy").write_text("no array")
    run = ("--run", "--device=sim")
    check(legoc("-", "shape.npy", *run, stdin=SMALL), r"^shape.npy: .* \[64, 64\], .* \[3, 3\]")
    check(legoc("-", "type.npy", *run, stdin=SMALL), r"^type.npy: .* f32 .* float64\nhint: convert")
    check(legoc("-", "none.npy", *run, stdin=SMALL), r"^none.npy: error: .* No such file")
    check(legoc("-", "text.npy", *run, stdin=SMALL), r"^text.npy: error: this file is no .npy")
    many = ["shape.npy"] * 3
    check(legoc("-", *many, *run, stdin=SMALL), r"takes 2 arguments, 3 are given\nhint: .* a, b")


def test_arrays_may_stand_behind_options(legoc: Any, tmp_path: Path) -> None:
    a = np.random.default_rng(1).random((64, 64), np.float32)
    np.save(tmp_path / "a.npy", a)
    answer = legoc("-", "--run", "a.npy", "--device=sim", "--save=out", stdin=SMALL)
    assert answer.status == 0, answer.err
    assert (np.load(tmp_path / "out" / "b.npy") == a.T).all()


def test_options_that_a_bundle_does_not_take(legoc: Any) -> None:
    assert legoc("-", "--emit=bundle", "-o", "t.lego", stdin=SMALL).status == 0
    assert legoc("t.lego", "--run", "--device=sim").status == 0
    for option in ("--set=T=16", "--target=sm_80", "--schedule=unroll", "--keep=steps"):
        answer = legoc("t.lego", "--run", "--device=sim", option)
        check(
            answer, rf"^t.lego: error: {option.split('=')[0]} .* compiled already\nhint: .*bundle"
        )


def test_outputs_that_cannot_be_saved(legoc: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    answer = legoc("-", "--run", "--device=sim", "--save=file", stdin=SMALL)
    check(answer, r"^file: error: the outputs cannot be saved")
    assert (tmp_path / "file").read_text() == "precious"


def test_a_device_that_is_not_there(legoc: Any, monkeypatch: Any) -> None:
    from lego_mlir.runtime import device

    if device.select("auto").name == "cuda":
        pytest.skip("there is a GPU")
    check(legoc("-", "--run", "--device=cuda", stdin=SMALL), r"device 'cuda' .*\nhint: .*sim")


def test_a_wrong_result_is_shown_with_its_index(legoc: Any) -> None:
    wrong = edited(SMALL, "(%v, %b, %n, %m, %i, %col)", "(%v, %b, %m, %n, %i, %col)")
    answer = legoc("-", "--run", "--device=sim", stdin=wrong)
    assert (answer.status, answer.err) == (1, "")
    assert re.search(
        r"DIFFERENT from NumPy's transpose: b: \d+ of 4096 elements differ, "
        r"the first at \[0, 32\]: expected [-.\d]+, found [-.\d]+",
        answer.out.decode(),
    )


def test_a_parameter_that_the_schedule_does_not_have(legoc: Any) -> None:
    with_schedule = ("-", "--emit=scheduled", "--param", "buffers=3")
    answer = legoc(*with_schedule, "--schedule=cp_async", stdin=SMALL)
    check(answer, "the schedule 'cp_async' has no parameter 'buffers'\nhint: .*stages = 4, depth")
    answer = legoc(*with_schedule, "--schedule=unroll", stdin=SMALL)
    check(answer, "the schedule 'unroll' has no parameter 'buffers'\nhint: it has none")


def test_steps_are_kept_where_there_is_room(legoc: Any, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    arguments = ("-", "--schedule=unroll", "--emit=scheduled", "--keep")
    check(legoc(*arguments, "taken", stdin=SMALL), "taken: error: cannot make the folder of --keep")
    assert legoc(*arguments, "steps/all", stdin=SMALL).status == 0
    kept = sorted((tmp_path / "steps" / "all").iterdir())
    assert [file.name for file in kept] == [
        "00-match.mlir",
        "01-foreach.mlir",
        "02-apply_patterns.mlir",
        "03-apply_cse.mlir",
    ]
    assert "gpu.launch" in kept[-1].read_text()


def test_the_steps_before_one_that_fails_are_kept(legoc: Any, tmp_path: Path) -> None:
    answer = legoc("-", "--schedule=cp_async", "--emit=ptx", "--keep", "steps", stdin=SMALL)
    assert answer.status == 1
    assert (tmp_path / "steps" / "02-parameter.mlir").is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "required: INPUT"),
        (["-", "--foo"], "unrecognized arguments: --foo"),
        (["-", "--emit=foo"], "invalid choice: 'foo'"),
        (["-", "--device=foo"], "invalid choice: 'foo'"),
        (["-", "--run", "--emit=ptx"], "--run excludes --emit and -o"),
        (["-", "--run", "-o", "x"], "--run excludes --emit and -o"),
        (["-", "a.npy"], "'a.npy': arrays need --run"),
        (["-", "--save=x"], "--save needs --run"),
        (["-", "--schedule="], "--schedule takes the name of a schedule"),
        (["-", "--keep="], "--keep takes the name of a folder"),
        (["-", "--run", "--save="], "--save takes the name of a folder"),
        (["-", "--param", "depth"], "'depth' is not NAME=N"),
        (["-", "--param", "depth=-1"], "'depth=-1' is not NAME=N with an integer of at least 0"),
        (["-", "-o", ""], "-o takes the name of a file"),
        (["-", "--set", "T"], "'T' is not NAME=N"),
        (["-", "--set", "T=a"], "'T=a' is not NAME=N"),
        (["-", "--set", "T=0"], "'T=0' is not NAME=N"),
        (["-", "--set", "T=" + "9" * 5000], "is not NAME=N"),
        (["-", "--run", "--seed=-1"], "'-1' is not an integer of at least 0"),
        (["-", "--pass-pipeline", "cse"], "'cse' is not STAGE=PIPELINE"),
        (["-", "--pass-pipeline", "llvm=cse"], "'llvm=cse' is not STAGE=PIPELINE"),
    ],
)
def test_wrong_usage(legoc: Any, arguments: list[str], says: str) -> None:
    answer = legoc(*arguments)
    check(answer, re.escape(says), status=2)
    assert answer.err.endswith("hint: legoc --help\n")


def test_an_output_that_lacks_characters() -> None:
    """`1024×1024` on an ASCII terminal loses its ×, not the run."""
    done = subprocess.run(
        [sys.executable, "-m", "lego_mlir.cli", "-", "--run", "--device=sim"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        input=SMALL.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"f32 64?64" in done.stdout


def test_nesting_without_end(legoc: Any) -> None:
    ops = "".join(
        f"    %d{k} = arith.floordivsi %{'n' if k == 0 else f'd{k - 1}'}, %m : index\n"
        for k in range(2000)
    )
    text = (
        "func.func @f(%n: index, %m: index) -> index {\n"
        f"{ops}"
        '  %0 = "lego.inv"(%d1999) {layout = #lego.layout<"OrderBy(Row(7))">} : (index) -> index\n'
        "  return %0 : index\n}\n"
    )
    answer = legoc("-", stdin=text)
    assert answer.status in (0, 1)
    assert "has a bug" not in answer.err


# (the arguments, the error's text)
LIMITS = [
    (["--limit", "cta=3"], "there is no limit 'cta'\nhint: limits: .*ctas"),
    (["--limit", "ctas"], "'ctas' is not ctas=VALUE"),
    (["--limit", "ctas=0"], "the limit ctas is an integer of at least 1, not 0"),
    (["--limit", "ctas=-1"], "'ctas=-1' is not ctas=VALUE"),
    (["--limit", "ctas=" + "9" * 5000], "is not ctas=VALUE"),
    (["--limit", "ctas=3"], r"a grid of \(4, 1, 1\) has 4 CTAs .*; the limit ctas is 3"),
    (["--limit", "instructions=99"], "have run 99 instructions"),
    (["--limit", "layout_tokens=8"], r"<stdin>:\d+:\d+: error: the layout has 9 words and signs"),
    (["--limit", "index_steps=9"], r"<stdin>:\d+:\d+: error: .* the limit index_steps is 9"),
]


@pytest.mark.parametrize(("options", "says"), LIMITS)
def test_limits_are_options(legoc: Any, options: list[str], says: str) -> None:
    sizes = {"layout_tokens=8": "96", "index_steps=9": "160"}  # others have been derived before
    module = EXAMPLE.replace("1024", sizes.get(options[1], "64"))
    check(legoc("-", "--run", "--device=sim", *options, stdin=module), says)


def test_a_limit_may_be_raised(legoc: Any) -> None:
    answer = legoc("-", "--run", "--device=sim", "--limit", "ctas=4", stdin=SMALL)
    assert answer.status == 0, answer.err
