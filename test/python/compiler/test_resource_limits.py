"""A launch that needs more than a GPU has is an error at its line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.compiler.kernels.resource_limits import check_registers
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source

KERNEL = """module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: memref<32xf32>) kernel ATTRIBUTES {
      gpu.return
    }
  }
  func.func @host(%a: memref<32xf32>) {
    %c1 = arith.constant 1 : index
    %n = arith.constant THREADS : index
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
      args(%a : memref<32xf32>)
    return
  }
}
"""


def compiled(threads: int, attributes: str = "") -> Compilation:
    text = KERNEL.replace("THREADS", str(threads)).replace("ATTRIBUTES", attributes)
    return Compilation(Source("k.mlir", text), Options(target=Target.parse("sm_90a")))


@pytest.mark.parametrize(("registers", "fits"), [(128, True), (121, True), (129, False)])
def test_a_block_needs_no_more_registers_than_a_multiprocessor_has(
    registers: int, fits: bool
) -> None:
    compilation = compiled(512)
    (kernel,) = compilation.cubin.resources
    cubin = replace(compilation.cubin, resources=(replace(kernel, registers=registers),))
    if fits:
        check_registers(compilation.nvvm, cubin, compilation.source)
        return
    with pytest.raises(LegoError, match=r"k\.mlir:10:5: .*129 registers .* needs 69632, .* 65536"):
        check_registers(compilation.nvvm, cubin, compilation.source)


def test_a_launch_has_no_more_threads_than_a_block_may_have() -> None:
    assert compiled(1024).ptx
    with pytest.raises(LegoError, match=r"k\.mlir:10:5: error: a CTA of 1025×1×1 has 1025"):
        _ = compiled(1025).ptx


def test_the_known_size_of_a_kernel_has_no_more_threads_than_a_block_may_have() -> None:
    attributes = "attributes {known_block_size = array<i32: 64, 32, 1>}"
    with pytest.raises(LegoError, match=r"k\.mlir:3:5: error: a CTA of 64×32×1 has 2048"):
        _ = compiled(32, attributes).ptx
