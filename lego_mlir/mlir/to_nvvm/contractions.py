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
from lego_mlir.mlir.modules import operations_in

_CONTRACTED = ("arith.mulf", "arith.addf", "arith.subf")
_FLAGS, _NONE = "fastmath", "#arith.fastmath<none>"


def contract_products(operations: Iterable[Any], source: Source) -> None:
    """Flag the products and sums of each launch with `lego.contract`; other flags are kept.

    Args:
        operations: of a module, before kernels are outlined; its context is the current one.
        source: the module's text, for errors.

    Raises:
        LegoError: the attribute is no unit attribute.
    """
    for launch in operations:
        if launch.name != "gpu.launch" or dialect.CONTRACT not in launch.attributes:
            continue
        attribute = launch.attributes[dialect.CONTRACT]
        if not isinstance(attribute, ir.UnitAttr):
            error: LegoError = source.error(
                f"'{dialect.CONTRACT}' is a unit attribute, not '{attribute}'",
                launch.location,
                hint=f"{{{dialect.CONTRACT}}} on the gpu.launch, or leave it out",
            )
            raise error
        flags = ir.Attribute.parse("#arith.fastmath<contract>")
        for op in operations_in(launch):
            if op.name in _CONTRACTED and str(op.attributes[_FLAGS]) == _NONE:
                op.attributes[_FLAGS] = flags
