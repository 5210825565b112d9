"""Texts that MLIR's recursive parser and printer cannot take are errors at their place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.limits import DEFAULT, Limits
from lego_mlir.mlir.context import Source, new_context, parse
from lego_mlir.mlir.nesting import check_nesting

DEEP = 100_000
LINES = 100
TEXTS = {
    "regions": "module {\n" * DEEP,
    "lists": "module attributes {a.b = " + "[" * DEEP,
    "types": "func.func private @f(" + "tuple<" * DEEP,
    "minus": "#m = affine_map<(d0) -> (" + "- " * DEEP + "d0)>",
    "sums": "#m = affine_map<(d0) -> (" + "d0 + " * DEEP + "d0)>",
    "sums of brackets": "#m = affine_map<(d0) -> (" + "(d0) mod 3 + " * DEEP + "d0)>",
    "aliases": "#a0 = [1]\n" + "".join(f"#a{i + 1} = [#a{i}]\n" for i in range(DEEP)),
    "types by aliases": "!a0 = i32\n" + "".join(f"!a{i + 1} = tuple<!a{i}>\n" for i in range(DEEP)),
    "doubled aliases": "#a0 = [1]\n" + "".join(f"#a{i + 1} = [#a{i}, #a{i}]\n" for i in range(99)),
}


@pytest.mark.parametrize("what", TEXTS)
def test_deep_texts(what: str) -> None:
    with pytest.raises(LegoError, match=r"^deep\.mlir:\d+:\d+: error: .*the limit module_"):
        parse(Source("deep.mlir", TEXTS[what]), new_context())


def test_the_place_is_that_of_the_bracket() -> None:
    text = '// ((((\nmodule attributes {a.b = "((((", a.c = [[[\n  ["é", [1]]]]]} {}'
    with Limits(module_nesting=5).applied():
        check_nesting("", text.replace("[1]", "1"))
        with pytest.raises(LegoError, match=r"^m\.mlir:3:9: error: 6 brackets"):
            check_nesting("m.mlir", text)


@pytest.mark.parametrize(
    "line",
    [
        "%a = arith.constant -1 : index\n",
        "%a = arith.addi %b, %c : index // ((\n",
        'lego.print "((" : (i32) -> i32\n',
        "affine_set<(d0) : (d0 - 1 >= 0)>\n",
        "affine_map<(d0) -> (d0 + 1, d0 - 1, -d0)>\n",
        "#a = affine_map<(d0) -> (d0 + 1)>\n",
    ],
)
def test_what_does_not_nest(line: str) -> None:
    with Limits(module_nesting=5).applied():
        check_nesting("", line * LINES)


def test_what_is_at_the_limit_compiles(tmp_path: Path) -> None:
    """In a process of its own: what is wrong would end it."""
    inside = DEFAULT.module_nesting - 2
    loops = "".join(f"scf.for %i{k} = %a to %b step %c {{\n" for k in range(inside))
    body = f"{loops}{'}' * inside}\n return"
    constants = "".join(f"%{x} = arith.constant 1 : index\n" for x in "abc")
    file = tmp_path / "loops.mlir"
    file.write_text(f"module {{ func.func @f() {{\n{constants}{body} }} }}")
    command = [sys.executable, "-m", "lego_mlir.cli", str(file)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")
