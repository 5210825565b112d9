"""Kernels that go through shared memory, as their threads do it, for tests of barriers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.insert_barriers import insert_barriers
from lego_mlir.mlir.tile_passes.plan_shared_memory import plan_shared_memory
from lego_mlir.runtime import run
from lego_mlir.runtime.simulator import Simulator

BARRIERS = {"gpu.barrier": "cta", "nvvm.bar.warp.sync": "warp"}

_HEAD = """#M = #lego.layout<"OrderBy(Row({elements}))">
#space = #gpu.address_space<workgroup>
func.func @main(%x: memref<{elements}xf32> {{lego.alignment = 16 : i64}},
                %y: memref<{elements}xf32> {{lego.alignment = 16 : i64}})
    attributes {{{attributes}}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant {threads} : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %threads, %tyy = %c1, %tzz = %c1) {{
    %t4 = arith.muli %t, %c4 : index
    {body}
    gpu.terminator
  }}
  return
}}
"""


def module(warps: int, body: Sequence[str], attributes: str = "") -> str:
    """Return a module with a kernel of one CTA, whose threads have 4 elements each.

    Args:
        warps: of the CTA.
        body: its lines. `%t` is the thread's number, `%t4` 4 times that.
        attributes: of the host function.
    """
    threads = 32 * warps
    lines = "\n    ".join(body)
    return _HEAD.format(elements=4 * threads, threads=threads, body=lines, attributes=attributes)


def load(name: str, buffer: str, at: str, strides: Sequence[tuple[int, int]]) -> str:
    """Return the load of 4 elements of a buffer `x`, `y` or shared `s...`.

    Args:
        name: of the parts: `%name#0` to `%name#3`.
        buffer: the name of the buffer.
        at: the first index.
        strides: the register factors: size and stride.
    """
    registers = ", ".join(f"0, {n}, {s}" for n, s in strides)
    return (
        f'%{name}:4 = "lego.load_parts"(%{buffer}, {at}) {{layout = #M, registers = array<i64: '
        f"{registers}>, operandSegmentSizes = array<i32: 1, 1, 0>}} : ({{{buffer}}}, index) -> "
        "(f32, f32, f32, f32)"
    )


def store(name: str, buffer: str, at: str, strides: Sequence[tuple[int, int]]) -> str:
    """Return the store of 4 elements; arguments as `load`."""
    registers = ", ".join(f"0, {n}, {s}" for n, s in strides)
    values = ", ".join(f"%{name}#{k}" for k in range(4))
    return (
        f'"lego.store_parts"(%{buffer}, {at}, {values}) {{layout = #M, registers = array<i64: '
        f"{registers}>, operandSegmentSizes = array<i32: 1, 1, 4, 0>}} : ({{{buffer}}}, index, "
        "f32, f32, f32, f32) -> ()"
    )


def typed(text: str, warps: int) -> str:
    """Put the types of buffers where `load` and `store` name them."""
    elements = 4 * 32 * warps
    for name in ("x", "y"):
        text = text.replace(f"{{{name}}}", f"memref<{elements}xf32>")
    for name in ("s0", "s1"):
        text = text.replace(f"{{{name}}}", "memref<?xf32, #space>")
    return text


def alloc(name: str) -> str:
    """Return the allocation of a shared buffer."""
    return f'%{name} = "lego.alloc"() {{layout = #M}} : () -> memref<?xf32, #space>'


def placed(text: str) -> Compilation:
    """Return the compilation of a module whose kernel has its shared memory and barriers."""
    compilation = Compilation(Source("barriers.mlir", text), Options())
    compiled = compilation._parsed
    with compiled.context, ir.Location.unknown():
        kernel = kernel_of(compilation)
        plan_shared_memory(kernel)
        insert_barriers(kernel)
        compiled.operation.verify()
    return compilation


def kernel_of(compilation: Compilation) -> TileKernel:
    """Return the kernel of a module."""
    launch = next(
        op for op in operations_in(compilation._parsed.operation) if op.name == "gpu.launch"
    )
    target = compilation.options.target
    return TileKernel(launch, compilation.layouts, compilation.source, target)


def barriers(compilation: Compilation) -> list[Any]:
    """Return the barriers of a module, in order."""
    return [op for op in operations_in(compilation._parsed.operation) if op.name in BARRIERS]


def kinds(compilation: Compilation) -> list[str]:
    """Return what the barriers of a module are of: "cta" or "warp"."""
    return [BARRIERS[op.name] for op in barriers(compilation)]


def outputs(
    compilation: Compilation, arrays: Mapping[str, Any], *, global_checks: bool = False
) -> dict[str, Any]:
    """Return what a kernel leaves in its arguments; an error if accesses race."""
    artifact = compilation.artifact(assemble=False)
    given = {name: np.array(x) for name, x in arrays.items()}
    return dict(run(artifact, given, device=Simulator(global_checks=global_checks)).outputs)


def without_each(text: str) -> Iterator[Compilation]:
    """Yield the compilation without each one of its barriers."""
    for k in range(len(barriers(placed(text)))):
        compilation = placed(text)
        barriers(compilation)[k].erase()
        yield compilation
