"""A GEMM of one CTA as a module: the payload that tests `contract_to_mma`.

The module copies the operands to shared memory element by element, so that only `contract_to_mma`
is between them and the result. All numbers are small integers, so that the accumulation is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from lego_mlir import runtime
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source
from lego_mlir.runtime import dtypes
from lego_mlir.runtime.simulator import Simulator
from lego_mlir.sim.cost.counter import Costs

SCHEDULE = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %contractions = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.contract_to_mma"(%contractions) {ATTRIBUTES} : (!transform.any_op) -> ()
    transform.yield
  }
}
"""


Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MmaKernel:
    """A GEMM of one CTA with a K loop and an epilogue.

    Attributes:
        tile: m, n and k of an iteration.
        iterations: of the K loop.
        warps: layout of the warps over the tile of C.
        element: element type of A and B.
        accumulator: element type of the accumulator.
        out: element type of C.
        shared_a: shared-memory layout of A's tile, in the dimensions BM and BK.
        shared_b: shared-memory layout of B's tile, in the dimensions BK and BN.
        c: layout of C.
        transposed: whether A and B are transposed in memory.
        size: m and n of C; those of the tile if `None`.
        initial: operations that define %zero, the initial accumulator.
        epilogue: operations that define %result from %sum.
        store: operations that store %result.
        prefetch: the attribute of `contract_to_mma`.
        result_map: the accumulator's indexing map of the contraction.
        separate_stages: whether each iteration has its own allocation in shared memory.
        after_dot: operations that define %last, which the loop carries, from %next.
    """

    tile: tuple[int, int, int] = (32, 32, 32)
    iterations: int = 2
    warps: str = "OrderBy(Row(1, 1))"
    element: str = "f16"
    accumulator: str = "f32"
    out: str = "f32"
    shared_a: str = "OrderBy(Row(BM, BK))"
    shared_b: str = "OrderBy(Row(BK, BN))"
    c: str = "OrderBy(Row(M, N)).TileBy([1, 1], [BM, BN])"
    transposed: tuple[bool, bool] = (False, False)
    size: tuple[int, int] | None = None
    initial: str = ""
    epilogue: str = ""
    store: str = ""
    prefetch: int = 0
    result_map: str = "(i, j)"
    separate_stages: bool = False
    after_dot: str = ""

    @property
    def threads(self) -> int:
        """Return the number of threads of the CTA."""
        return 32 * prod(int(n) for n in self.warps.split("(")[-1].rstrip(")").split(","))

    def text(self) -> str:
        """Return the module."""
        bm, bn, bk = self.tile
        m, n = self.size or (bm, bn)
        k = bk * self.iterations
        e, acc, out = self.element, self.accumulator, self.out
        a = "OrderBy(Row(BM, K)).TileBy([1, K/BK], [BM, BK])"
        b = "OrderBy(Row(K, BN)).TileBy([K/BK, 1], [BK, BN])"
        shape_a, shape_b = [bm, bk], [bk, bn]
        map_a, map_b = "(i, k)", "(k, j)"
        if self.transposed[0]:
            shape_a, map_a = [bk, bm], "(k, i)"
            a = "OrderBy(Row(K, BM)).TileBy([K/BK, 1], [BK, BM])"
        if self.transposed[1]:
            shape_b, map_b = [bn, bk], "(j, k)"
            b = "OrderBy(Row(BN, K)).TileBy([1, K/BK], [BN, BK])"
        index_a = "%k, %c0" if self.transposed[0] else "%c0, %k"
        index_b = "%c0, %k" if self.transposed[1] else "%k, %c0"
        vector_a, vector_b = (
            f"vector<{rows}x{columns}x{e}>" for rows, columns in (shape_a, shape_b)
        )
        space = "#gpu.address_space<workgroup>"
        stage, kind, whole, stages = "", "", "slice = array<i64: 0, 1>", "OrderBy("
        if self.separate_stages:
            stage, kind, whole = "%k, ", ", index", "slice = array<i64: 1, 2>"
            stages = f"OrderBy(Row({self.iterations}), "
        shared_a, shared_b = (
            x.replace("OrderBy(", stages, 1) for x in (self.shared_a, self.shared_b)
        )
        zero = "0" if acc == "i32" else "0.0"
        tile = f"vector<{bm}x{bn}x{acc}>"
        store = self.store or (
            f'"lego.store"(%result, %c, %c0, %c0) {{layout = #C, slice = array<i64: 2, 3>}} '
            f": (vector<{bm}x{bn}x{out}>, memref<{m * n}x{out}>, index, index) -> ()"
        )
        return f"""
#A = #lego.layout<"{a}">
#B = #lego.layout<"{b}">
#C = #lego.layout<"{self.c}">
#SA = #lego.layout<"{shared_a}">
#SB = #lego.layout<"{shared_b}">
module attributes {{lego.sizes = {{M = {m}, N = {n}, K = {k}, BM = {bm}, BN = {bn}, BK = {bk}}}}} {{
  func.func @gemm(%a: memref<{bm * k}x{e}> {{lego.layout = #A}},
                     %b: memref<{bn * k}x{e}> {{lego.layout = #B}},
                     %bias: memref<{bn}xf32>, %initial: memref<{m * n}x{acc}> {{lego.layout = #C}},
                     %c: memref<{m * n}x{out}> {{lego.layout = #C}}) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %threads = arith.constant {self.threads} : index
    %steps = arith.constant {self.iterations} : index
    %elements_a = arith.constant {bm * bk} : index
    %elements_b = arith.constant {bn * bk} : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {{
      %sa = "lego.alloc"() {{layout = #SA}} : () -> memref<?x{e}, {space}>
      %sb = "lego.alloc"() {{layout = #SB}} : () -> memref<?x{e}, {space}>
      {self.initial or f"%zero = arith.constant dense<{zero}> : {tile}"}
      %sum, %count = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero, %n = %c0)
          -> ({tile}, index) {{
        scf.for %f = %tx to %elements_a step %threads {{
          %i, %j = "lego.inv"(%f) {{layout = #lego.layout<"OrderBy(Row({shape_a}))">}}
              : (index) -> (index, index)
          %v = "lego.load"(%a, {index_a}, %i, %j) {{layout = #A}}
              : (memref<{bm * k}x{e}>, index, index, index, index) -> {e}
          "lego.store"(%v, %sa, {stage}%i, %j) {{layout = #SA}}
              : ({e}, memref<?x{e}, {space}>{kind}, index, index) -> ()
        }}
        scf.for %f = %tx to %elements_b step %threads {{
          %i, %j = "lego.inv"(%f) {{layout = #lego.layout<"OrderBy(Row({shape_b}))">}}
              : (index) -> (index, index)
          %v = "lego.load"(%b, {index_b}, %i, %j) {{layout = #B}}
              : (memref<{bn * k}x{e}>, index, index, index, index) -> {e}
          "lego.store"(%v, %sb, {stage}%i, %j) {{layout = #SB}}
              : ({e}, memref<?x{e}, {space}>{kind}, index, index) -> ()
        }}
        gpu.barrier
        %x = "lego.load"(%sa{", %k" if stage else ""}) {{layout = #SA, {whole}}}
            : (memref<?x{e}, {space}>{kind}) -> {vector_a}
        %y = "lego.load"(%sb{", %k" if stage else ""}) {{layout = #SB, {whole}}}
            : (memref<?x{e}, {space}>{kind}) -> {vector_b}
        %next = vector.contract {{indexing_maps = [affine_map<(i, j, k) -> {map_a}>,
            affine_map<(i, j, k) -> {map_b}>, affine_map<(i, j, k) -> {self.result_map}>],
            iterator_types = ["parallel", "parallel", "reduction"],
            lego.warps = #lego.layout<"{self.warps}">}} %x, %y, %acc
            : {vector_a}, {vector_b} into {tile}
        {self.after_dot}
        %more = arith.addi %n, %c1 : index
        gpu.barrier
        scf.yield {"%last" if self.after_dot else "%next"}, %more : {tile}, index
      }}
      {self.epilogue or "%result = arith.addf %sum, %sum : " + tile}
      {store}
      gpu.terminator
    }}
    return
  }}
}}
"""


def encoded(values: Array, element: str) -> Array:
    """Return small integers as elements of a type, as raw bits if NumPy has no such type."""
    if element == "bf16" or element.startswith("f8"):
        return dtypes.encode(values.astype(np.float64), element)
    return values.astype(dtypes.numpy_dtype(element))


def compilation(
    text: str, folder: Path, attributes: str = "", target: str = "sm_90a"
) -> Compilation:
    """Return the compilation of a module by a schedule that applies `contract_to_mma`."""
    schedule = folder / "schedule.mlir"
    schedule.write_text(SCHEDULE.replace("ATTRIBUTES", attributes))
    options = Options(target=Target.parse(target), schedule=str(schedule))
    return Compilation(Source("t.mlir", text), options)


def run(
    kernel: MmaKernel, folder: Path, target: str = "sm_90a"
) -> tuple[Array, dict[str, Array], Costs]:
    """Simulate a kernel; return the output, the operands as integers, and the costs."""
    attributes = f"prefetch = {kernel.prefetch} : i64"
    artifact = compilation(kernel.text(), folder, attributes, target).artifact(assemble=False)
    bm, bn, bk = kernel.tile
    m, n = kernel.size or (bm, bn)
    k = bk * kernel.iterations
    random = np.random.default_rng(1)
    operands = {
        "a": random.integers(-4, 5, (bm, k)),
        "b": random.integers(-4, 5, (k, bn)),
        "bias": random.integers(-9, 9, bn),
        "initial": random.integers(-9, 9, (m, n)),
    }
    a, b = (
        x.T if t else x
        for x, t in zip((operands["a"], operands["b"]), kernel.transposed, strict=True)
    )
    arrays = {
        "arg0": encoded(a, kernel.element),
        "arg1": encoded(b, kernel.element),
        "arg2": operands["bias"].astype(np.float32),
        "arg3": encoded(operands["initial"], kernel.accumulator),
    }
    arrays = {arg.name: v for arg, v in zip(artifact.arguments, arrays.values(), strict=False)}
    result = runtime.run(artifact, arrays, Simulator(costs=True))
    (out,) = result.outputs.values()
    return out, operands, result.costs[0]
