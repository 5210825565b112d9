"""How kernels access an argument follows from the module's operations before lowering."""

from __future__ import annotations

import pytest

from lego_mlir.compiler.driver import Compilation
from lego_mlir.mlir.context import Source

LAYOUT = '{layout = #lego.layout<"OrderBy(Row(8))">}'
ADD = LAYOUT.replace("}", ', kind = "add"}')
KERNEL = """
func.func @f(%a: memref<8xi32>, %b: memref<8xi32>) {{
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {{
    %v = memref.load %a[%tx] : memref<8xi32>
    {body}
    gpu.terminator
  }}
  return
}}"""


@pytest.mark.parametrize(
    ("body", "access"),
    [
        ("", "none"),
        (f'%x = "lego.load"(%b, %tx) {LAYOUT} : (memref<8xi32>, index) -> i32', "read"),
        (f'"lego.store"(%v, %b, %tx) {LAYOUT} : (i32, memref<8xi32>, index) -> ()', "write"),
        (
            f'%x = "lego.atomic"(%v, %b, %tx) {ADD} : (i32, memref<8xi32>, index) -> i32',
            "readwrite",
        ),
        ("memref.store %v, %b[%tx] : memref<8xi32>", "write"),
        ("memref.copy %a, %b : memref<8xi32> to memref<8xi32>", "readwrite"),
    ],
)
def test_an_operation_decides_the_access(body: str, access: str) -> None:
    compilation = Compilation(Source("test.mlir", KERNEL.format(body=body)))
    artifact = compilation.artifact(assemble=False)
    assert [x.access for x in artifact.arguments][1] == access
