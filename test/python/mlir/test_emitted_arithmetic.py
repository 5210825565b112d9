"""The proof by mass: random layouts through the whole compiler, compared at every element.

Of each layout these must be what the definitions of the paper say: its offsets and indices on
arrays, the formula with no rule applied, the simplified expression, and the arithmetic in MLIR
that legoc's `index` stage makes of `lego.apply` and `lego.inv`. Many layouts go into one module.
In half of them the compiler is told the ranges of the indices, and what it prints is the very
expression that is simplified within these ranges; of the others that is evaluated by itself.

LEGO_TEST_EXAMPLES sets the number of layouts for a longer run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import emitted
import numpy as np
import pytest
import unsimplified
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from own_permutations import FUNCTIONS_MLIR
from random_layouts import (
    L,
    bound,
    built,
    every_index,
    layouts,
    symbolic_layouts,
    table_of,
    values_of,
)

from lego_mlir.algebra import Layout
from lego_mlir.compiler.pipelines import pipeline
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Sym, evaluate
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source, new_context, parse, run_pipeline
from lego_mlir.mlir.layouts import Layouts, layout_attribute, symbols_of
from lego_mlir.mlir.lowering.lower_lego import lower_lego

BATCH = 25
LAYOUTS = int(os.environ.get("LEGO_TEST_EXAMPLES", "1000"))


# --------------------------------------------------------------------- what a layout should give
@dataclass(frozen=True)
class Case:
    """A layout, numbers for its symbols, and its truth: at offsets[k] lies index[:, k]."""

    layout: Layout
    sizes: Mapping[str, int]
    offsets: np.ndarray[Any, Any]
    index: list[np.ndarray[Any, Any]]

    @staticmethod
    def of(d: L, sizes: Mapping[str, int]) -> Case:
        numbers = bound(d, sizes)
        return Case(built(d), sizes, table_of(numbers), every_index(built(numbers).dims))

    def check_offset(self, got: Any, what: str) -> None:
        same = np.all(np.asarray(got) == self.offsets)
        assert same, f"{what}: apply of {self.layout.text} with {self.sizes}"

    def check_index(self, got: Iterable[Any], what: str) -> None:
        for k, (x, truth) in enumerate(zip(got, self.index, strict=True)):
            same = np.all(np.asarray(x) == truth)
            assert same, f"{what}: inv of {self.layout.text} with {self.sizes}, index {k}"


def check_arrays(case: Case) -> None:
    layout = case.layout.bind(**case.sizes)
    case.check_offset(layout.apply(*case.index), "arrays")
    case.check_index(layout.inv(case.offsets), "arrays")


def check_expressions(case: Case, simplified: bool) -> None:
    layout = case.layout
    symbols = [Sym(f"i{k}", 0, n - 1) for k, n in enumerate(layout.dims)]
    at = {f"i{k}": i for k, i in enumerate(case.index)} | {"p": case.offsets} | case.sizes
    p = Sym("p", 0, layout.size - 1)
    with unsimplified.recording(layout):
        offset, index = layout.apply(*symbols), layout.inv(p)
    case.check_offset(unsimplified.value(offset, at), "no rules")
    case.check_index((unsimplified.value(x, at) for x in index), "no rules")
    if simplified:
        case.check_offset(evaluate(layout.apply(*symbols), at), "simplified")
        case.check_index((evaluate(x, at) for x in layout.inv(p)), "simplified")


# ------------------------------------------------------------------------------------ in MLIR
def is_ranged(number: int) -> bool:
    """Whether the functions of the module's layout of that number know their ranges."""
    return number % 2 == 0


def functions_text(number: int, layout: Layout, ranged: bool) -> str:
    """@apply and @inv of a layout: indices or the offset, then its symbols, go in.

    Args:
        number: a suffix for their names.
        layout: the layout.
        ranged: whether the compiler is told that the values lie in their ranges.
    """
    attribute = str(layout_attribute(layout))
    names = [f"%{s.name}" for s in symbols_of(layout, ir.Attribute.parse(attribute))]
    dims, size = list(layout.dims), [layout.size]
    return "\n".join(
        (
            _function("apply", number, attribute, [f"%i{k}" for k in range(layout.rank)], dims,
                      names, 1, ranged),
            _function("inv", number, attribute, ["%p"], size, names, layout.rank, ranged),
        )
    )  # fmt: skip


def _function(
    op: str, number: int, attribute: str, values: list[str], limits: list[Any],
    symbols: list[str], results: int, ranged: bool,
) -> str:  # fmt: skip
    body, operands = [], []
    for k, (value, limit) in enumerate(zip(values, limits, strict=True)):
        if ranged and isinstance(limit, int):
            body += [f"%n{k} = arith.constant {limit} : index",
                     f"{value}r = arith.remui {value}, %n{k} : index"]  # fmt: skip
            operands.append(f"{value}r")
        else:
            operands.append(value)
    index, kinds = ", ".join(["index"] * results), ["index"] * (len(values) + len(symbols))
    names = [f"%r{k}" for k in range(results)]
    arguments = ", ".join(f"{x}: index" for x in (*values, *symbols))
    return "\n".join(
        (
            f"func.func @{op}{number}({arguments}) -> ({index}) {{",
            *body,
            f'{", ".join(names)} = "lego.{op}"({", ".join((*operands, *symbols))}) '
            f"{{layout = {attribute}}} : ({', '.join(kinds)}) -> ({index})",
            f"return {', '.join(names)} : {index}",
            "}",
        )
    )


def compiled(text: str) -> Any:
    """A module after the index stage."""
    source = Source("batch.mlir", text)
    context = new_context()
    module = parse(source, context)
    lower_lego(module, Layouts.of_module(module, source), source, Target.parse("sm_80"))
    run_pipeline(module, pipeline("index", {}), source, "index")
    return module


def check_emitted(cases: list[Case]) -> None:
    with new_context():
        texts = [functions_text(k, c.layout, is_ranged(k)) for k, c in enumerate(cases)]
        sizes = [
            [c.sizes[s.name] for s in symbols_of(c.layout, layout_attribute(c.layout))]
            for c in cases
        ]
    module = compiled("\n".join([FUNCTIONS_MLIR, *texts]))
    functions = emitted.functions(module)
    for k, case in enumerate(cases):
        try:
            (offset,) = emitted.run(functions[f"apply{k}"], *case.index, *sizes[k])
            index = emitted.run(functions[f"inv{k}"], case.offsets, *sizes[k])
        except AssertionError as e:
            raise AssertionError(f"emitted: {case.layout.text} with {case.sizes}: {e}") from e
        case.check_offset(offset, "emitted")
        case.check_index(index, "emitted")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One layout in five has symbolic sizes."""
    if draw(st.integers(0, 4)) > 0:
        return Case.of(draw(layouts()), {})
    d = draw(symbolic_layouts())
    return Case.of(d, draw(values_of(built(d))))


# A failure names its layout; to shrink a batch would take minutes.
@settings(
    max_examples=max(1, LAYOUTS // BATCH),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],
)
@given(st.lists(cases(), min_size=BATCH, max_size=BATCH))
def test_emitted_arithmetic_computes_the_layouts_definition(batch: list[Case]) -> None:
    for k, case in enumerate(batch):
        check_arrays(case)
        check_expressions(case, simplified=bool(case.sizes) or not is_ranged(k))
    check_emitted(batch)


# ------------------------------------------------------------- the evaluator has to be right too
EDGES = [-(1 << 62), -33, -8, -1, 0, 1, 7, 8, 31, 1 << 40]


def computed(body: str, *arguments: Any, kind: str = "index") -> Any:
    """What a function of %a and %b computes, with no pass run."""
    names = ", ".join(f"%{name}: {kind}" for name in "ab"[: len(arguments)])
    text = f"func.func @f({names}) -> {kind} {{\n{body}\nreturn %r : {kind}\n}}"
    module = parse(Source("f.mlir", text), new_context())
    (result,) = emitted.run(emitted.functions(module)["f"], *arguments)
    return result


@pytest.mark.parametrize(
    ("op", "meaning"),
    [
        ("addi", lambda a, b: a + b),
        ("subi", lambda a, b: a - b),
        ("floordivsi", lambda a, b: a // b),
        ("ceildivsi", lambda a, b: -(-a // b)),
        ("divsi", lambda a, b: int(a / b) if abs(a) < 1 << 50 else a // b + (a % b != 0)),
        ("remsi", lambda a, b: abs(a) % b * (1 if a >= 0 else -1)),
        ("divui", lambda a, b: (a % 2**64) // b),
        ("remui", lambda a, b: (a % 2**64) % b),
        ("minui", lambda a, b: a if a % 2**64 < b else b),
        ("maxsi", max),
        ("andi", lambda a, b: a & b),
        ("xori", lambda a, b: a ^ b),
        ("shrsi", lambda a, b: a >> b),
        ("shrui", lambda a, b: (a % 2**64) >> b),
    ],
)
def test_the_evaluator_computes_on_python_integers(op: str, meaning: Any) -> None:
    for b in (1, 3, 8):
        got = computed(f"%r = arith.{op} %a, %b : index", EDGES, b)
        truth = [(meaning(a, b) + 2**63) % 2**64 - 2**63 for a in EDGES]
        assert got.tolist() == truth


@pytest.mark.parametrize(
    ("body", "a", "b", "reason"),
    [
        ("%r = arith.muli %a, %b : index", 1 << 40, 1 << 40, "may not fit 64 bits"),
        ("%r = arith.addi %a, %b : index", (1 << 63) - 1, 1, "may not fit 64 bits"),
        ("%r = arith.divui %a, %b : index", 5, 0, "divide by zero"),
        ("%r = arith.shrsi %a, %b : index", 5, 64, "shifted too far"),
        ("%c = arith.index_cast %a : index to i32\n%r = arith.index_cast %c : i32 to index",
         1 << 31, 0, "not of i32"),
        ("%r = affine.apply affine_map<(d0)[s0] -> (d0 mod s0)>(%a)[%b]", 5, 0, "not positive"),
    ],
)  # fmt: skip
def test_what_mlir_leaves_undefined_is_an_error(body: str, a: int, b: int, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        computed(body, a, b)


def test_an_unknown_operation_is_an_error_with_its_name() -> None:
    with pytest.raises(AssertionError, match=r"no meaning is given for arith\.addui_extended"):
        computed("%r, %c = arith.addui_extended %a, %b : index, i1", 1, 2)


def test_affine_maps_round_down() -> None:
    body = "%r = affine.apply affine_map<(d0)[s0] -> (d0 floordiv 8 + s0 * (d0 mod 8))>(%a)[%b]"
    assert computed(body, EDGES, 100).tolist() == [a // 8 + 100 * (a % 8) for a in EDGES]
