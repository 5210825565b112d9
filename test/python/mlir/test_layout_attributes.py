"""The text of a layout attribute depends on its layout alone, not on what was compiled before."""

from __future__ import annotations

import pytest

from lego_mlir.algebra import parse_layout
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir import layouts
from lego_mlir.mlir.context import Source, new_context

SPELLINGS = [
    ("OrderBy(Col(24, 40))", "OrderBy(RegP([24, 40], [1, 0]))"),
    ("OrderBy(Row(24, 40))", "OrderBy(RegP([24, 40], [0, 1]))"),
    ("OrderBy(Row(960))", "OrderBy(Col(960))"),
]

MODULE = """
func.func @f(%a: memref<960xf32> {{lego.layout = #lego.layout<"{0}">}}) {{
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %u, %v) in (%bx = %c32, %by = %c1, %bz = %c1) {{
    %v0 = "lego.load"(%a, {1}) {{layout = #lego.layout<"{0}">}} : (memref<960xf32>, {2}) -> f32
    "lego.store"(%v0, %a, {1}) {{layout = #lego.layout<"{0}">}} : (f32, memref<960xf32>, {2}) -> ()
    gpu.terminator
  }}
  return
}}
"""


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_spellings_of_a_layout_have_one_attribute(one: str, other: str) -> None:
    with new_context():
        found = []
        for texts in ((one, other), (other, one)):
            layouts._written.cache_clear()
            found += [str(layouts.layout_attribute(parse_layout(text))) for text in texts]
    assert len(set(found)) == 1


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_artifacts_do_not_depend_on_the_order_of_compilations(one: str, other: str) -> None:
    def text(layout: str) -> str | None:
        indices, types = ("%t, %c1", "index, index") if "24" in layout else ("%t", "index")
        module = MODULE.format(layout, indices, types)
        options = Options(target=Target.parse("sm_80"))
        artifact = Compilation(Source("f.mlir", module), options).artifact(assemble=False)
        return artifact.arguments[0].layout

    layouts._written.cache_clear()
    first = text(one), text(other)
    layouts._written.cache_clear()
    second = text(other), text(one)
    assert first == second[::-1]
