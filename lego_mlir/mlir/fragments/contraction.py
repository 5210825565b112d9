"""Reading a `vector.contract` of tiles as a matmul that `mma.sync` or `wgmma` computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit.mma import INSTRUCTIONS, Instruction
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import Tile, tile_of


@dataclass(frozen=True, slots=True)
class Contraction:
    """A matmul of two tiles in shared memory that adds to a tile in registers.

    Attributes:
        op: the vector.contract.
        a: operand A, which has the result's rows.
        b: operand B, which has the result's columns.
        a_k_dim, b_k_dim: the dimension of each operand that is K.
        sizes: M, N and K.
        warps: the layout from the position of a warp tile to the warp's id.
        instruction: the `mma.sync` for the element types.
    """

    op: Any
    a: Tile
    b: Tile
    a_k_dim: int
    b_k_dim: int
    sizes: tuple[int, int, int]
    warps: Layout
    instruction: Instruction


def read_contraction(step: TransformStep, op: Any) -> Contraction:
    """Read a vector.contract.

    Raises:
        LegoError: it is no matmul, no instruction of the target computes it, warps and instructions
            do not divide the tile, or an operand is not in shared memory.
    """
    if op.name != "vector.contract":
        raise step.error(
            f"looked for a vector.contract, found '{op.name}'",
            op,
            hint='pass the result of transform.structured.match ops{["vector.contract"]}',
        )
    dimensions = operand_dimensions(step, op)
    instruction = _instruction(step, op)
    operands = [_operand(step, op, number) for number in (0, 1)]
    inner = dimensions[0].index(2) if 2 in dimensions[0] else 0, dimensions[1].index(2)
    shape = tuple(ir.VectorType(op.operands[2].type).shape)
    k_size = operands[0].shape[inner[0]]
    a = 0 if 0 in dimensions[0] else 1
    found = Contraction(
        op,
        operands[a],
        operands[1 - a],
        inner[a],
        inner[1 - a],
        (shape[0], shape[1], k_size),
        _warps(step, op),
        instruction,
    )
    _check_divides(step, found)
    return found


def operand_dimensions(step: TransformStep, op: Any) -> list[list[int]]:
    """Return for lhs and rhs what their dimensions are: 0 for M, 1 for N, 2 for K."""
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    kinds = [
        str(a).split("<")[-1].rstrip(">") for a in ir.ArrayAttr(op.attributes["iterator_types"])
    ]
    dimensions = [[_position(e) for e in m.results] for m in maps]
    summed = [k for k, kind in enumerate(kinds) if kind == "reduction"]
    result = dimensions[2]
    is_matmul = (
        len(kinds) == 3
        and len(summed) == 1
        and len(result) == 2
        and sorted(map(sorted, dimensions[:2]))
        == sorted([sorted([result[0], summed[0]]), sorted([result[1], summed[0]])])
    )
    if not is_matmul:
        shown = ", ".join(str(m) for m in maps)
        raise step.error(
            f"looked for a matmul, found a contraction with the maps {shown} and the "
            f"iterators {', '.join(kinds)}",
            op,
            hint="(i, j, k) -> (i, k), (k, j), (i, j) with parallel, parallel, reduction; the "
            "dimensions of each operand may be in either order",
        )
    kind = str(op.attributes["kind"]) if "kind" in op.attributes else "add"
    if "add" not in kind:
        raise step.error(
            f"looked for a contraction that adds, found {kind}",
            op,
            hint="use #vector.kind<add>: tensor cores have no instruction for another kind",
        )
    order = [*result, summed[0]]
    return [[order.index(p) for p in operand] for operand in dimensions[:2]]


def _position(expression: Any) -> int:
    return int(ir.AffineDimExpr(expression).position)


def _instruction(step: TransformStep, op: Any) -> Instruction:
    """Return the instruction for the element types of a contraction."""
    lhs, rhs, accumulator = (ir.VectorType(op.operands[k].type).element_type for k in range(3))
    known = [i for i in INSTRUCTIONS if i.capability <= step.pass_context.target.capability]
    listed = ", ".join(map(str, known)) or "none"
    for instruction in INSTRUCTIONS:
        if (str(lhs), str(rhs), str(accumulator)) != (
            instruction.element,
            instruction.element,
            instruction.accumulator,
        ):
            continue
        if instruction not in known:
            major, minor = instruction.capability
            raise step.error(
                f"{step.pass_context.target.name} has no mma.sync of {instruction}",
                op,
                hint=f"use sm_{major}{minor} or later; this target has: {listed}",
            )
        for name, n in zip("mnk", instruction.shape, strict=True):
            if step.number(name, n) != n:
                raise step.misuse(
                    f"{name} is {step.number(name)}, but mma.sync of {instruction} has {n}",
                    hint="leave out m, n and k",
                )
        return instruction
    raise step.error(
        f"{step.pass_context.target.name} has no mma.sync of {lhs} by {rhs} to {accumulator}",
        op,
        hint=f"it has: {listed}",
    )


def _operand(step: TransformStep, op: Any, number: int) -> Tile:
    """Return an operand of a contraction, a tile in shared memory."""
    which = ("lhs", "rhs")[number]
    value = op.operands[number]
    if isinstance(value, ir.BlockArgument) or value.owner.name != dialect.LOAD:
        found = "a block argument" if isinstance(value, ir.BlockArgument) else value.owner.name
        raise step.error(
            f"looked for the {which} operand in shared memory, found '{found}'",
            op,
            hint="load it by a lego.load with a `shared` layout",
        )
    load = value.owner.operation
    tile = tile_of(load, step.pass_context)
    if not tile.is_shared:
        raise step.error(
            f"the {which} operand is read from the buffer {tile.buffer.type}, and ldmatrix reads "
            "shared memory",
            load,
            hint="give the load a `shared` layout",
        )
    between = _between(load, op)
    if between is None or any(_prevents_moving(o, tile) for o in between):
        raise step.error(
            f"the load of the {which} operand cannot move to the contraction: a barrier, a store "
            "to the tile, or the end of a block is between them",
            load,
            hint="move the load right before the contraction, where ldmatrix reads",
        )
    return tile


def _between(first: Any, last: Any) -> list[Any] | None:
    """Return the operations between two of one block, `None` if they are in two blocks."""
    if first.block != last.block:
        return None
    operations = [o.operation for o in first.block.operations]
    return operations[operations.index(first) + 1 : operations.index(last)]


def _prevents_moving(op: Any, tile: Tile) -> bool:
    """Return whether a load of `tile` must not move after `op`."""
    writes = op.name == dialect.STORE and op.operands[1] == tile.buffer
    return bool(op.name in ("gpu.barrier", "nvvm.barrier", "nvvm.barrier0") or writes)


def _warps(step: TransformStep, op: Any) -> Layout:
    if dialect.WARPS not in op.attributes:
        raise step.error(
            f"the contraction has no {dialect.WARPS}, the layout of warps over its tile",
            op,
            hint=f'{dialect.WARPS} = #lego.layout<"OrderBy(Row(2, 2))">: 2 by 2 warps',
        )
    layout = step.pass_context.layouts(op.attributes[dialect.WARPS], op.location)
    if layout.rank != 2 or layout.symbols:
        raise step.error(
            f"{dialect.WARPS} '{layout}' has {layout.rank} dimensions"
            + (" and symbolic sizes" if layout.symbols else "")
            + ", but needs 2 of constant size: rows and columns of warps",
            op,
            hint=f'{dialect.WARPS} = #lego.layout<"OrderBy(Row(2, 2))">: 2 by 2 warps',
        )
    return layout


def _check_divides(step: TransformStep, found: Contraction) -> None:
    down, across = found.warps.dims
    divisions = zip(
        ("rows", "columns", "elements along K"),
        found.sizes,
        (down, across, 1),
        found.instruction.shape,
        strict=True,
    )
    for what, size, warps, unit in divisions:
        assert isinstance(warps, int)
        if size % (warps * unit):
            shared = f"{warps} warps of " if what != "elements along K" else ""
            raise step.error(
                f"the tile has {size} {what}, no multiple of {warps * unit}: {shared}"
                f"instructions m{found.instruction.shape[0]}n{found.instruction.shape[1]}"
                f"k{found.instruction.shape[2]} with {unit}",
                found.op,
                hint="change the tile's sizes, or the warps: lego.warps, or the schedule's --param "
                "warpgroups=1",
            )
