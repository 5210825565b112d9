"""Kernels on placed tiles as text, and their runs in the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.mlir.context import Source
from lego_mlir.runtime import run, select

ELEMENTS = {
    np.dtype(np.float16): "f16",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(ml_dtypes.float8_e4m3fn): "f8E4M3FN",
    np.dtype(ml_dtypes.float8_e5m2): "f8E5M2",
    np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
}


MOST_REGISTERS = 160
"""The most registers of tiles that a test's kernel holds: a thread has 255."""


def tile(layout: DistributedLayout, element: str) -> str:
    """Return the type of a tile."""
    sizes = "".join(f"{n}x" for n in layout.shape)
    return f'tensor<{sizes}{element}, #lego.layout<"{layout.text}">>'


def shared_tile(layout: Layout, element: str) -> str:
    """Return the type of a tile in shared memory."""
    sizes = "".join(f"{n}x" for n in layout.dims)
    return f'tensor<{sizes}{element}, #lego.shared<"{layout.text}">>'


def rows(shape: Sequence[int]) -> str:
    """Return the row-major layout of a tensor."""
    return f'#lego.layout<"OrderBy(Row({", ".join(map(str, shape))}))">'


def kernel(arguments: Mapping[str, np.ndarray], warps: int, body: str, grid: int = 1) -> str:
    """Return a module with one kernel.

    Args:
        arguments: the tensors, row-major, by name; `#name` is the layout of each.
        warps: of a CTA.
        body: of the kernel; `%block` and `%thread` are their numbers, `%c0` is 0.
        grid: the number of CTAs.
    """
    layouts = "\n".join(f"#{name} = {rows(x.shape)}" for name, x in arguments.items())
    types = {name: f"memref<{x.size}x{ELEMENTS[x.dtype]}>" for name, x in arguments.items()}
    listed = ", ".join(
        f"%{n}: {t} {{lego.layout = #{n}, lego.alignment = 16 : i64}}" for n, t in types.items()
    )
    return f"""{layouts}
func.func @main({listed}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %grid = arith.constant {grid} : index
  %threads = arith.constant {32 * warps} : index
  gpu.launch blocks(%block, %block_y, %block_z) in (%gx = %grid, %gy = %c1, %gz = %c1)
      threads(%thread, %thread_y, %thread_z) in (%tx = %threads, %tyy = %c1, %tzz = %c1) {{
{body}
    gpu.terminator
  }}
  return
}}
"""


def access(
    arguments: Mapping[str, np.ndarray], name: str, dims: Sequence[int] | None = None
) -> str:
    """Return the attributes of an access of a whole tensor, or of some of its dimensions."""
    dims = range(arguments[name].ndim) if dims is None else dims
    if not dims:
        return f"{{layout = #{name}}}"
    return f"{{layout = #{name}, slice = array<i64: {', '.join(map(str, dims))}>}}"


def load(arguments: Mapping[str, np.ndarray], name: str, kind: str) -> str:
    """Return the operation that loads a whole tensor."""
    x = arguments[name]
    memref = f"memref<{x.size}x{ELEMENTS[x.dtype]}>"
    zeros = "".join(", %c0" for _ in x.shape)
    types = ", ".join([memref, *["index"] * x.ndim])
    return f'"lego.load"(%{name}{zeros}) {access(arguments, name)} : ({types}) -> {kind}'


def store(arguments: Mapping[str, np.ndarray], name: str, value: str, kind: str) -> str:
    """Return the operation that stores a whole tensor."""
    x = arguments[name]
    memref = f"memref<{x.size}x{ELEMENTS[x.dtype]}>"
    zeros = "".join(", %c0" for _ in x.shape)
    types = ", ".join([kind, memref, *["index"] * x.ndim])
    return f'"lego.store"({value}, %{name}{zeros}) {access(arguments, name)} : ({types}) -> ()'


def compiled(text: str, *, check: bool = False) -> Compilation:
    """Return the compilation of a module's text."""
    return Compilation(Source("tiles.mlir", text), Options(check=check))


@lru_cache(maxsize=64)
def artifact_of(text: str, *, check: bool = False) -> Artifact:
    """Return the artifact of a module's text, compiled once for all orders of the simulator."""
    return compiled(text, check=check).artifact(assemble=False)


def outputs(
    text: str, arguments: Mapping[str, np.ndarray], order: str = "late", *, check: bool = False
) -> dict[str, Any]:
    """Return what a kernel leaves in its arguments, by name."""
    artifact = artifact_of(text, check=check)
    given = {name: x.copy() for name, x in arguments.items()}
    result = run(artifact, given, device=select("sim", order=order))
    return {
        name: np.asarray(x).reshape(arguments[name].shape) for name, x in result.outputs.items()
    }


def converted(
    source: DistributedLayout, target: DistributedLayout, dtype: type, order: str = "late"
) -> str:
    """Run a conversion of different numbers, compare, and return the module's text."""
    x = (np.arange(prod(source.shape)) % 127).astype(dtype).reshape(source.shape)
    arguments, element = {"x": x, "y": np.zeros_like(x)}, ELEMENTS[x.dtype]
    before, after = tile(source, element), tile(target, element)
    body = f"""
    %v = {load(arguments, "x", before)}
    %w = "lego.convert"(%v) : ({before}) -> {after}
    {store(arguments, "y", "%w", after)}
    """
    text = kernel(arguments, source.warps, body)
    assert np.array_equal(outputs(text, arguments, order)["y"], x), f"{source} to {target}"
    return text


def fits(dtype: type, *layouts: DistributedLayout) -> bool:
    """Return whether tiles in these layouts surely fit the registers of a thread together."""
    words = max(1, np.dtype(dtype).itemsize // 4)
    return sum(layout.registers for layout in layouts) * words <= MOST_REGISTERS
