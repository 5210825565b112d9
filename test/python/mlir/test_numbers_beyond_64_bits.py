"""Numbers in a module that no 64 bits hold are errors, wherever they meet the IR."""

from __future__ import annotations

import pytest

from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.emit import affine


@pytest.mark.parametrize(("constant", "coefficient"), [(0, 1 << 63), (-(1 << 63) - 1, 1)])
def test_sums_of_multiples_refuse_numbers_beyond_64_bits(constant: int, coefficient: int) -> None:
    with ir.Context(), pytest.raises(LegoError, match="does not fit 64 bits"):
        affine.apply(constant, [(coefficient, None)])


def test_a_reduction_in_a_cta_of_too_many_threads_is_an_error() -> None:
    text = """
func.func @f(%a: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %n = arith.constant 4096 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %v = memref.load %a[%tx] : memref<64xf32>
    %s = gpu.all_reduce add %v {} : (f32) -> f32
    memref.store %s, %a[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}
"""
    with pytest.raises(LegoError, match=r"CTA of 4096 threads; a GPU takes at most 1024"):
        _ = Compilation(Source("r.mlir", text), Options()).nvvm
