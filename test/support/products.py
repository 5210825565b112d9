"""One block's product of matrices as a module: what a step on contractions is tested with.

The operands have been put into shared memory already, element by element, so that only that step
is between them and the result. All numbers are small integers: sums are exact.
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
    %products = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.contract_to_mma"(%products) {ATTRIBUTES} : (!transform.any_op) -> ()
    transform.yield
  }
}
"""


Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Product:
    """One block's product, tile by tile of k, and what is done with the sums.

    `tile` is m, n, k; `left` and `right` are layouts of the operands' tiles in shared memory, in
    the dimensions of the tile. `start` makes %zero, `epilogue` %result of %sum, and `store` puts it
    somewhere. With `slots` each step has its own room in shared memory. `inside` makes %last, which
    the loop carries on, of the step's %next.
    """

    tile: tuple[int, int, int] = (32, 32, 32)
    steps: int = 2
    warps: str = "OrderBy(Row(1, 1))"
    element: str = "f16"
    sums: str = "f32"
    out: str = "f32"
    left: str = "OrderBy(Row(BM, BK))"
    right: str = "OrderBy(Row(BK, BN))"
    c: str = "OrderBy(Row(M, N)).TileBy([1, 1], [BM, BN])"
    transposed: tuple[bool, bool] = (False, False)
    size: tuple[int, int] | None = None
    start: str = ""
    epilogue: str = ""
    store: str = ""
    prefetch: int = 0
    result: str = "(i, j)"
    slots: bool = False
    inside: str = ""

    @property
    def threads(self) -> int:
        return 32 * prod(int(n) for n in self.warps.split("(")[-1].rstrip(")").split(","))

    def text(self) -> str:
        bm, bn, bk = self.tile
        m, n = self.size or (bm, bn)
        k = bk * self.steps
        e, sums, out = self.element, self.sums, self.out
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
        slot, kind, whole, room = "", "", "slice = array<i64: 0, 1>", "OrderBy("
        if self.slots:
            slot, kind, whole = "%k, ", ", index", "slice = array<i64: 1, 2>"
            room = f"OrderBy(Row({self.steps}), "
        left, right = (x.replace("OrderBy(", room, 1) for x in (self.left, self.right))
        zero = "0" if sums == "i32" else "0.0"
        tile = f"vector<{bm}x{bn}x{sums}>"
        store = self.store or (
            f'"lego.store"(%result, %c, %c0, %c0) {{layout = #C, slice = array<i64: 2, 3>}} '
            f": (vector<{bm}x{bn}x{out}>, memref<{m * n}x{out}>, index, index) -> ()"
        )
        return f"""
#A = #lego.layout<"{a}">
#B = #lego.layout<"{b}">
#C = #lego.layout<"{self.c}">
#SA = #lego.layout<"{left}">
#SB = #lego.layout<"{right}">
module attributes {{lego.sizes = {{M = {m}, N = {n}, K = {k}, BM = {bm}, BN = {bn}, BK = {bk}}}}} {{
  func.func @product(%a: memref<{bm * k}x{e}> {{lego.layout = #A}},
                     %b: memref<{bn * k}x{e}> {{lego.layout = #B}},
                     %bias: memref<{bn}xf32>, %start: memref<{m * n}x{sums}> {{lego.layout = #C}},
                     %c: memref<{m * n}x{out}> {{lego.layout = #C}}) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %threads = arith.constant {self.threads} : index
    %steps = arith.constant {self.steps} : index
    %elements_a = arith.constant {bm * bk} : index
    %elements_b = arith.constant {bn * bk} : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {{
      %sa = "lego.alloc"() {{layout = #SA}} : () -> memref<?x{e}, {space}>
      %sb = "lego.alloc"() {{layout = #SB}} : () -> memref<?x{e}, {space}>
      {self.start or f"%zero = arith.constant dense<{zero}> : {tile}"}
      %sum, %count = scf.for %k = %c0 to %steps step %c1 iter_args(%part = %zero, %n = %c0)
          -> ({tile}, index) {{
        scf.for %f = %tx to %elements_a step %threads {{
          %i, %j = "lego.inv"(%f) {{layout = #lego.layout<"OrderBy(Row({shape_a}))">}}
              : (index) -> (index, index)
          %v = "lego.load"(%a, {index_a}, %i, %j) {{layout = #A}}
              : (memref<{bm * k}x{e}>, index, index, index, index) -> {e}
          "lego.store"(%v, %sa, {slot}%i, %j) {{layout = #SA}}
              : ({e}, memref<?x{e}, {space}>{kind}, index, index) -> ()
        }}
        scf.for %f = %tx to %elements_b step %threads {{
          %i, %j = "lego.inv"(%f) {{layout = #lego.layout<"OrderBy(Row({shape_b}))">}}
              : (index) -> (index, index)
          %v = "lego.load"(%b, {index_b}, %i, %j) {{layout = #B}}
              : (memref<{bn * k}x{e}>, index, index, index, index) -> {e}
          "lego.store"(%v, %sb, {slot}%i, %j) {{layout = #SB}}
              : ({e}, memref<?x{e}, {space}>{kind}, index, index) -> ()
        }}
        gpu.barrier
        %x = "lego.load"(%sa{", %k" if slot else ""}) {{layout = #SA, {whole}}}
            : (memref<?x{e}, {space}>{kind}) -> {vector_a}
        %y = "lego.load"(%sb{", %k" if slot else ""}) {{layout = #SB, {whole}}}
            : (memref<?x{e}, {space}>{kind}) -> {vector_b}
        %next = vector.contract {{indexing_maps = [affine_map<(i, j, k) -> {map_a}>,
            affine_map<(i, j, k) -> {map_b}>, affine_map<(i, j, k) -> {self.result}>],
            iterator_types = ["parallel", "parallel", "reduction"],
            lego.warps = #lego.layout<"{self.warps}">}} %x, %y, %part
            : {vector_a}, {vector_b} into {tile}
        {self.inside}
        %more = arith.addi %n, %c1 : index
        gpu.barrier
        scf.yield {"%last" if self.inside else "%next"}, %more : {tile}, index
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
    """Small integers as the elements of a type, raw bits where NumPy has no such type."""
    if element == "bf16" or element.startswith("f8"):
        return dtypes.encode(values.astype(np.float64), element)
    return values.astype(dtypes.numpy_dtype(element))


def compilation(
    text: str, folder: Path, attributes: str = "", target: str = "sm_90a"
) -> Compilation:
    """A module whose contractions are given to tensor cores, by a schedule put into a folder."""
    schedule = folder / "schedule.mlir"
    schedule.write_text(SCHEDULE.replace("ATTRIBUTES", attributes))
    options = Options(target=Target.parse(target), schedule=str(schedule))
    return Compilation(Source("t.mlir", text), options)


def run(
    problem: Product, folder: Path, target: str = "sm_90a"
) -> tuple[Array, dict[str, Array], Costs]:
    """The result, the operands as integers, and what the run cost."""
    attributes = f"prefetch = {problem.prefetch} : i64"
    artifact = compilation(problem.text(), folder, attributes, target).artifact(assemble=False)
    bm, bn, bk = problem.tile
    m, n = problem.size or (bm, bn)
    k = bk * problem.steps
    random = np.random.default_rng(1)
    given = {
        "a": random.integers(-4, 5, (bm, k)),
        "b": random.integers(-4, 5, (k, bn)),
        "bias": random.integers(-9, 9, bn),
        "start": random.integers(-9, 9, (m, n)),
    }
    a, b = (
        x.T if t else x for x, t in zip((given["a"], given["b"]), problem.transposed, strict=True)
    )
    arrays = {
        "arg0": encoded(a, problem.element),
        "arg1": encoded(b, problem.element),
        "arg2": given["bias"].astype(np.float32),
        "arg3": encoded(given["start"], problem.sums),
    }
    arrays = {arg.name: v for arg, v in zip(artifact.arguments, arrays.values(), strict=False)}
    result = runtime.run(artifact, arrays, Simulator(costs=True))
    (out,) = result.outputs.values()
    return out, given, result.costs[0]
