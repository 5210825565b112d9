"""Let products be added before they are rounded, where a kernel asks for it.

    %p = arith.mulf %x, %y : f32
    %s = arith.addf %p, %z : f32

in a `gpu.launch` with `lego.contract` becomes

    %p = arith.mulf %x, %y fastmath<contract> : f32
    %s = arith.addf %p, %z fastmath<contract> : f32

of which LLVM makes `fma.rn.f32` (PTX ISA 9.7.3, `fma`): one instruction, and one rounding, instead
of two.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.modules import surroundings

_CONTRACTED = ("arith.mulf", "arith.addf", "arith.subf")
_FLAGS = "fastmath"


def contract_products(operations: Iterable[Any], source: Source) -> None:
    """Flag the products and sums of each launch with `lego.contract`; other flags are kept.

    Args:
        operations: of a module, before kernels are outlined; its context is the current one.
        source: the module's text, for errors.

    Raises:
        LegoError: the attribute is no unit attribute.
    """
    launches, contracted = [], []
    for op in operations:
        if op.name in _CONTRACTED:
            contracted.append(op)
        elif op.name == "gpu.launch" and dialect.CONTRACT in op.attributes:
            launches.append(op)
    for launch in launches:
        attribute = launch.attributes[dialect.CONTRACT]
        if not isinstance(attribute, ir.UnitAttr):
            error: LegoError = source.error(
                f"'{dialect.CONTRACT}' is a unit attribute, not '{attribute}'",
                launch.location,
                hint=f"{{{dialect.CONTRACT}}} on the gpu.launch, or leave it out",
            )
            raise error
    if not launches:
        return
    none, flags = map(ir.Attribute.parse, ("#arith.fastmath<none>", "#arith.fastmath<contract>"))
    is_inside: dict[Any, bool] = {}
    for op in contracted:
        block = op.block
        if block not in is_inside:
            is_inside[block] = any(around in launches for around in surroundings(op))
        if is_inside[block] and op.attributes[_FLAGS] == none:
            op.attributes[_FLAGS] = flags
