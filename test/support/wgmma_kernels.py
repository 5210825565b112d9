"""GEMMs as modules for the schedule `wgmma`, and their runs in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from gemm_kernels import encoded
from swizzled_tiles import by_columns, by_rows

from lego_mlir import runtime
from lego_mlir.algebra import Col, Layout, OrderBy, Row, ceildiv
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.mlir.context import Source
from lego_mlir.runtime.simulator import Simulator

BYTES = {"f16": 2, "bf16": 2, "f8E4M3FN": 1, "f8E5M2": 1}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class WgmmaKernel:
    """C = A·B with TMA and wgmma.

    Attributes:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        tile: m, n and k of an iteration.
        column_major: whether A and B are column-major.
        element: element type of A and B.
        out: element type of C.
        consumers: consumer warpgroups.
        rasterization: layout from the CTA id to the tile of C; row-major if `None`.
        epilogue: operations that define %result from %sum.
        parameters: of the schedule.
    """

    m: int = 128
    n: int = 128
    k: int = 128
    tile: tuple[int, int, int] = (64, 64, 64)
    column_major: tuple[bool, bool] = (False, False)
    element: str = "f16"
    out: str = "f16"
    consumers: int = 1
    rasterization: str | None = None
    epilogue: str | None = None
    parameters: Mapping[str, int] = field(default_factory=dict)

    @property
    def tiles(self) -> tuple[int, int]:
        """Return the number of tiles of C, down and across."""
        return -(-self.m // self.tile[0]), -(-self.n // self.tile[1])

    def text(self) -> str:
        """Return the module."""
        bm, bn, bk = self.tile
        m, n, k, e, out = self.m, self.n, self.k, self.element, self.out
        size = BYTES[e]
        a = self._tensor(m, k, bm, bk, self.column_major[0])
        b = self._tensor(k, n, bk, bn, self.column_major[1])
        c = self._tensor(m, n, bm, bn, False)
        rasterization = self.rasterization or OrderBy(Row(*self.tiles))
        width = 4 if out == "f32" else 2
        columns = bn // max(1, self.parameters.get("split_k", 1))  # those that a CTA stores
        mode = min(128, columns * width)
        swizzled = mode in (32, 64, 128)
        chunk = by_rows(64, mode // width, width, mode) if swizzled else OrderBy(Row(64, columns))
        warps = OrderBy(Row(4 * self.consumers, 1))
        epilogue = self.epilogue or (
            f"%result = arith.truncf %sum : vector<{bm}x{bn}xf32> to vector<{bm}x{bn}x{out}>"
        )
        return f"""
#A = #lego.layout<"{a}">
#B = #lego.layout<"{b}">
#C = #lego.layout<"{c}">
#shared_A = #lego.layout<"{self._shared(bm, bk, size, self.column_major[0])}">
#shared_B = #lego.layout<"{self._shared(bk, bn, size, self.column_major[1])}">
#shared_C = #lego.layout<"{chunk}">
#blocks = #lego.layout<"{rasterization}">
#warps = #lego.layout<"{warps}">
module {{
  func.func @gemm(%a: memref<{m * k}x{e}> {{lego.layout = #A, lego.alignment = 16 : i64}},
                     %b: memref<{k * n}x{e}> {{lego.layout = #B, lego.alignment = 16 : i64}},
                     %c: memref<{m * n}x{out}> {{lego.layout = #C, lego.alignment = 16 : i64}}) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %threads = arith.constant 128 : index
    %tiles = "lego.size"() {{layout = #blocks}} : () -> index
    %steps = "lego.dim"() {{layout = #A, dim = 1}} : () -> index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %tiles, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {{
      %m, %n = "lego.inv"(%bx) {{layout = #blocks}} : (index) -> (index, index)
      %zero = arith.constant dense<0.0> : vector<{bm}x{bn}xf32>
      %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero)
          -> vector<{bm}x{bn}xf32> {{
        %x = "lego.load"(%a, %m, %k) {{layout = #A, slice = array<i64: 2, 3>, shared = #shared_A}}
            : (memref<{m * k}x{e}>, index, index) -> vector<{bm}x{bk}x{e}>
        %y = "lego.load"(%b, %k, %n) {{layout = #B, slice = array<i64: 2, 3>, shared = #shared_B}}
            : (memref<{k * n}x{e}>, index, index) -> vector<{bk}x{bn}x{e}>
        %next = vector.contract {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
            affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
            iterator_types = ["parallel", "parallel", "reduction"], lego.warps = #warps}}
            %x, %y, %acc : vector<{bm}x{bk}x{e}>, vector<{bk}x{bn}x{e}> into vector<{bm}x{bn}xf32>
        scf.yield %next : vector<{bm}x{bn}xf32>
      }}
      {epilogue}
      "lego.store"(%result, %c, %m, %n)
          {{layout = #C, slice = array<i64: 2, 3>, shared = #shared_C}}
          : (vector<{bm}x{bn}x{out}>, memref<{m * n}x{out}>, index, index) -> ()
      gpu.terminator
    }}
    return
  }}
}}
"""

    @staticmethod
    def _tensor(rows: int, columns: int, high: int, wide: int, by_column: bool) -> Layout:
        tensor = OrderBy((Col if by_column else Row)(rows, columns))
        return tensor.TileBy([ceildiv(rows, high), ceildiv(columns, wide)], [high, wide])

    @staticmethod
    def _shared(rows: int, columns: int, size: int, by_column: bool) -> Layout:
        along = rows if by_column else columns
        return (by_columns if by_column else by_rows)(rows, columns, size, min(128, along * size))

    def compilation(self) -> Compilation:
        """Return the compilation of the module by the schedule `wgmma`."""
        return _compilation(self.text(), self.parameters)

    def artifact(self) -> Artifact:
        """Return the artifact, without machine code; it is compiled once for all orders."""
        return _artifact(self.text(), tuple(self.parameters.items()))


def _compilation(text: str, parameters: Mapping[str, int]) -> Compilation:
    options = Options(schedule="wgmma", parameters=dict(parameters))
    return Compilation(Source("gemm.mlir", text), options)


@lru_cache(maxsize=64)
def _artifact(text: str, parameters: tuple[tuple[str, int], ...]) -> Artifact:
    return _compilation(text, dict(parameters)).artifact(assemble=False)


def check(
    kernel: WgmmaKernel,
    order: str = "late",
    seed: int = 0,
    expected: Callable[[Array], Array] = lambda accumulator: accumulator,
) -> Artifact:
    """Run a kernel on small integers, and compare the output with NumPy's exact result."""
    artifact = kernel.artifact()
    random = np.random.default_rng(seed)
    a = random.integers(-2, 3, (kernel.m, kernel.k))
    b = random.integers(-2, 3, (kernel.k, kernel.n))
    operands = {"a": encoded(a, kernel.element), "b": encoded(b, kernel.element)}
    result = runtime.run(artifact, operands, Simulator(order=(order, seed)))
    (out,) = result.outputs.values()
    expected_out = encoded(expected(a @ b), kernel.out)
    np.testing.assert_array_equal(out, expected_out)
    return artifact
