"""Attributes of kernel functions that the CUDA driver and the assembler need.

They follow from the launches: the CTAs of a cluster, and the parameters that are tensor maps, which
a kernel gets by value as 128 bytes that it must not copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.compiler.kernels.resource_limits import is_alone
from lego_mlir.hardware.limits import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import Functions, launches_in, named_attributes

_ANNOTATION = "llvm.loop_annotation"
_OF_LAUNCHES = (
    dialect.CLUSTER,
    dialect.CTAS_PER_SM,
    dialect.PDL,
    dialect.EVICTION,
    dialect.PREFETCH,
)


def launch_attributes(operations: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the attributes of each launch, before the kernels are outlined."""
    return [
        {name: a for name, a in named_attributes(op).items() if name in _OF_LAUNCHES}
        for op in operations
        if op.name in ("gpu.launch", "gpu.launch_func")
    ]


def set_kernel_attributes(
    module: Any,
    functions: Functions,
    attributes_of_launches: Sequence[dict[str, Any]],
    target: Target,
) -> None:
    """Give a module's kernels, in the llvm dialect, the attributes that their launches ask for.

    Args:
        module: after outlining and lowering.
        functions: those of its gpu.module, from `functions_in`.
        attributes_of_launches: those of each launch, from `launch_attributes`.
        target: says how much shared memory there is.
    """
    for _, inside in functions.values():
        for op in (*inside.get("llvm.br", ()), *inside.get("llvm.cond_br", ())):
            if _ANNOTATION in op.attributes:
                # cf.br keeps the annotation of its loop, but not under the name LLVM expects.
                op.attributes["loop_annotation"] = op.attributes[_ANNOTATION]
                del op.attributes[_ANNOTATION]
    launches = launches_in(module)
    # If the user's pass pipeline leaves no kernels here, the next stage reports that.
    for launch, attributes in zip(launches, attributes_of_launches, strict=False):
        *_, name = launch.attributes["kernel"].value
        if name not in functions:
            continue
        entry, inside = functions[name]
        segments = list(launch.attributes["operandSegmentSizes"])
        first = sum(segments[:11])
        for number, value in enumerate(list(launch.operands)[first : first + segments[11]]):
            made_by = None if isinstance(value, ir.BlockArgument) else value.owner.name
            if made_by in (dialect.TENSOR_MAP, dialect.TENSOR_MAPS):
                count = 1 if made_by == dialect.TENSOR_MAP else len(value.owner.operands)
                _pass_by_value(entry, number, count)
        if dialect.PDL in attributes:
            launch.attributes[dialect.PDL] = attributes[dialect.PDL]
        if "nvvm.wgmma.fence.aligned" in inside:
            # Beside a jump table ptxas serializes wgmma (C7509, "extern calls").
            entry.attributes["passthrough"] = ir.ArrayAttr.get([_without_jump_tables()])
        ctas = attributes.get(dialect.CTAS_PER_SM)
        if ctas is not None or is_alone(launch, target) or "nvvm.setmaxregister" in inside:
            # Without a bound on the CTAs of a multiprocessor ptxas ignores the latter (C7508), and
            # spares registers for more CTAs, of which it does not know whether there are any.
            i32 = ir.IntegerType.get_signless(32)
            count = 1 if ctas is None else ir.IntegerAttr(ctas).value
            entry.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(i32, count)
        if dialect.CLUSTER in attributes:
            blocks = ir.IntegerAttr(attributes[dialect.CLUSTER]).value
            entry.attributes["nvvm.cluster_dim"] = ir.DenseI32ArrayAttr.get([blocks, 1, 1])


def _without_jump_tables() -> Any:
    """Return LLVM's function attribute that lowers switches to comparisons."""
    return ir.ArrayAttr.get([ir.StringAttr.get("no-jump-tables"), ir.StringAttr.get("true")])


def _pass_by_value(entry: Any, number: int, maps: int) -> None:
    """Make a pointer parameter an array of tensor maps that is passed by value."""
    count = len(entry.regions[0].blocks[0].arguments)
    known = entry.attributes.get("arg_attrs", None)
    attributes = list(ir.ArrayAttr(known)) if known is not None else [ir.DictAttr.get({})] * count
    i64 = ir.IntegerType.get_signless(64)
    kind = ir.Type.parse(f"!llvm.array<{maps * TENSOR_MAP_BYTES} x i8>")
    entries = {entry.name: entry.attr for entry in ir.DictAttr(attributes[number])}
    entries |= {
        "llvm.byval": ir.TypeAttr.get(kind),
        "llvm.align": ir.IntegerAttr.get(i64, TENSOR_MAP_ALIGNMENT),
        "nvvm.grid_constant": ir.UnitAttr.get(),
    }
    attributes[number] = ir.DictAttr.get(entries)
    entry.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
