"""Modules with one kernel on tiles, from the operations of its body."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from lego_mlir.mlir.context import Source, new_context, parse
from lego_mlir.mlir.tile_ir.interpreter import interpret

_MODULE = """\
{aliases}
module {{
  func.func @kernel({arguments}) {{
    %one = arith.constant 1 : index
    %grid = arith.constant {grid} : index
    %threads = arith.constant {threads} : index
    gpu.launch blocks(%b, %by, %bz) in (%gx = %grid, %gy = %one, %gz = %one)
               threads(%t, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {{
{body}
      gpu.terminator
    }}
    return
  }}
}}
"""


def tile_module(
    tensors: Mapping[str, tuple[str, tuple[int, ...]]],
    body: str,
    *,
    grid: int = 1,
    warps: int = 4,
    layouts: Mapping[str, str] | None = None,
    numbers: Mapping[str, str] | None = None,
) -> str:
    """Return a module's text.

    Args:
        tensors: element type and shape of each argument by name; `#NAME` is its row-major layout.
        body: the operations of the kernel; `%b` is the CTA, `%c0` and `%c1` constants.
        grid: CTAs along x.
        warps: of a CTA.
        layouts: more aliases, or other layouts of the tensors, by name.
        numbers: types of arguments that are numbers, by name.
    """
    aliases = {
        name: f"OrderBy(Row({', '.join(map(str, shape))}))" for name, (_, shape) in tensors.items()
    }
    aliases |= layouts or {}
    constants = "".join(f"      %c{k} = arith.constant {k} : index\n" for k in (0, 1))
    memrefs = [
        f"%{name}: {memref(kind, shape)} {{lego.layout = #{name}, lego.alignment = 16 : i64}}"
        for name, (kind, shape) in tensors.items()
    ]
    return _MODULE.format(
        aliases="\n".join(f'#{n} = #lego.layout<"{text}">' for n, text in aliases.items()),
        arguments=", ".join([*memrefs, *(f"%{n}: {k}" for n, k in (numbers or {}).items())]),
        grid=grid,
        threads=32 * warps,
        body=constants + body,
    )


def memref(kind: str, shape: tuple[int, ...]) -> str:
    """Return the type of a flat buffer."""
    return f"memref<{prod(shape)}x{kind}>"


def tile_type(shape: tuple[int, ...], kind: str) -> str:
    """Return the type of a tile without a layout."""
    return f"tensor<{'x'.join(map(str, (*shape, kind)))}>"


def load(name: str, tensor: str, shape: str, kind: str, at: str = "%c0") -> str:
    """Return a load of a whole tile of a flat buffer; `at` lists the origin."""
    origin = at.split(", ")
    dims = ", ".join(str(k) for k in range(len(origin)))
    types = ", ".join(["index"] * len(origin))
    return (
        f'      %{name} = "lego.load"(%{tensor}, {at}) {{layout = #{tensor}, '
        f"slice = array<i64: {dims}>}} : ({shape}, {types}) -> {kind}\n"
    )


def store(value: str, tensor: str, shape: str, kind: str, at: str = "%c0") -> str:
    """Return a store of a whole tile."""
    origin = at.split(", ")
    dims = ", ".join(str(k) for k in range(len(origin)))
    types = ", ".join(["index"] * len(origin))
    return (
        f'      "lego.store"(%{value}, %{tensor}, {at}) {{layout = #{tensor}, '
        f"slice = array<i64: {dims}>}} : ({kind}, {shape}, {types}) -> ()\n"
    )


def run(text: str, *inputs: Any) -> dict[str, Any]:
    """Interpret a module; return the tensors of its arguments."""
    source = Source("tiles.mlir", text)
    module = parse(source, new_context())
    return dict(interpret(module, list(inputs), source=source).tensors)
