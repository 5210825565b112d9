"""`transform_lego.contract_to_wgmma`: lower contractions of tiles in shared memory to wgmma.

    %x = "lego.load"(%sa, %stage) {layout = #SA, slice = array<i64: 1, 2>}
    %y = "lego.load"(%sb, %stage) {layout = #SB, slice = array<i64: 1, 2>}
    %next = vector.contract {..., lego.warps = #warps} %x, %y, %sums

becomes, for each thread,

    nvvm.wgmma.fence.aligned
    %0 = llvm.inline_asm "wgmma.mma_async.sync.aligned.m64n128k16 ..." %sums..., %a0, %b0, %a1, ...
    nvvm.wgmma.commit.group.sync.aligned

`analysis.instructions.wgmma_operands` derives the matrix descriptors from the layouts.
`specialize_warps` has placed the waits for the groups already. Operations on the accumulator are
distributed over the threads: a warpgroup's accumulator consists of the
`mma.m16n8` accumulators of four warps, one below the other.

Source: PTX ISA 9.7.15 (asynchronous warpgroup level matrix instructions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.analysis.instructions.mma_fragments import GROUP, THREAD, accumulator
from lego_mlir.analysis.instructions.wgmma_operands import MatrixDescriptor, operand_descriptors
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS, WARPGROUP_WARPS, WGMMA_ROWS
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.fragments.contraction import Contraction, read_contraction
from lego_mlir.mlir.fragments.distribute import TileDistribution
from lego_mlir.mlir.fragments.registers import AccumulatorRegisters
from lego_mlir.mlir.fragments.thread_fragment import FragmentValue, RestartedPairs
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.fragments.wgmma import WgmmaChain
from lego_mlir.mlir.schedule.transform_step import PassContext, TransformStep, transform
from lego_mlir.mlir.scopes import scope_of
from lego_mlir.mlir.tiles.accesses import Tile, apply, inv, tile_of
from lego_mlir.mlir.tiles.pointers import address, element_bytes, i32_constant
from lego_mlir.mlir.tiles.structure import is_zero
from lego_mlir.mlir.tiles.tensor_maps import require_alignment
from lego_mlir.mlir.warp_specialized.cluster_reduction import ClusterReduction
from lego_mlir.mlir.warp_specialized.tma_stores import TmaStores, is_stored_by_tma

_WINDOW = (1 << 18) - 1
"""The bits of a shared-memory address within its CTA; higher bits name the CTA of the cluster."""


@transform("contract_to_wgmma")
def contract_to_wgmma(step: TransformStep) -> list[list[Any]]:
    """Lower contractions, and distribute the operations on their results over the threads."""
    left = [read_contraction(step, op) for op in step.payload()]
    while left:
        first = left[0]
        group, thread, own = _thread(step, first)
        distribution = TileDistribution(step, thread, first.sizes[:2], first.warps)
        joined = distribution.collect(first.op, {c.op: c for c in left})
        groups = first.warps.size
        assert isinstance(groups, int)
        launch = scope_of(first.op).kernel
        results = TmaStores(step, launch, own, group, groups // WARPGROUP_WARPS)
        stores = [op for op in distribution.stores if is_stored_by_tma(op)]
        for op in stores:
            results.prepare(op)
        place = own, group, groups // WARPGROUP_WARPS
        reductions = {
            op: ClusterReduction(step, launch, op, *place, [first.a, first.b])
            for op in distribution.reductions
        }
        end = _end(first.op)
        lowerings = {c.op: _WgmmaLowering(step, c, group) for c in joined}
        distribution.rewrite(
            lowerings,
            {op: partial(results.store, op) for op in stores},
            reductions,
            lowerings[first.op].registers,
        )
        if stores:
            with ir.InsertionPoint(end), launch.location:
                results.finish()
        left = [c for c in left if c not in joined]
    return []


def _end(op: Any) -> Any:
    """Return the terminator of the outermost block below the kernel's body that contains `op`.

    It is the terminator of the body if `op` is directly in it.
    """
    kernels = ("gpu.launch", "gpu.func")
    while op.parent.name not in kernels and op.parent.parent.name not in kernels:
        op = op.parent.operation
    return list(op.block.operations)[-1]


def _thread(step: TransformStep, found: Contraction) -> tuple[Any, Thread, Thread]:
    """Return the warpgroup, and the thread's position in the CTA and in the warpgroup."""
    kernel = scope_of(found.op).kernel
    warps = found.warps.size
    assert isinstance(warps, int)
    rows = found.sizes[0]
    in_order = (found.warps.offsets().reshape(-1) == np.arange(warps)).all()
    if found.warps.dims[1] != 1 or rows % (WGMMA_ROWS * warps // WARPGROUP_WARPS) or not in_order:
        raise step.error(
            f"{warps} warps as '{found.warps}' do not fit {rows} rows: wgmma takes {WGMMA_ROWS} "
            f"rows a warpgroup, {WARPGROUP_WARPS} warps one below the other",
            found.op,
            hint=f'lego.warps = #lego.layout<"OrderBy(Row({rows // 16}, 1))">',
        )
    with ir.InsertionPoint.at_block_begin(kernel.regions[0].blocks[0]), found.op.location:
        number = kernel.regions[0].blocks[0].arguments[3]
        # The producer's warps, which have higher numbers, do not execute this.
        own = arith.RemUIOp(number, _index(warps * WARP_THREADS)).result
        group, warp, lane = inv(
            OrderBy(Row(warps // WARPGROUP_WARPS, WARPGROUP_WARPS, WARP_THREADS)), own
        )
        warp_id = apply(OrderBy(Row(warps // WARPGROUP_WARPS, WARPGROUP_WARPS)), [group, warp])
        row, column = inv(found.warps, warp_id)
        sizes = accumulator().sizes
        octet, quad = inv(OrderBy(Row(sizes[GROUP], sizes[THREAD])), lane)
    blocks = rows // (WGMMA_ROWS * warps // WARPGROUP_WARPS)
    by_quads = (group, warp) if blocks > 1 else None
    in_block = Thread((row, column), lane, octet, quad, by_quads)
    return group, in_block, Thread((warp, column), lane, octet, quad)


@dataclass(frozen=True, slots=True)
class _OperandDescriptors:
    """The matrix descriptors of an operand, one for each instruction.

    Attributes:
        tile: the operand in shared memory.
        by_block: the descriptors, by block of rows or columns and step along K.
    """

    tile: Tile
    by_block: tuple[tuple[MatrixDescriptor, ...], ...]

    def base(self, index: Sequence[Any], pass_context: PassContext) -> Any:
        """Return the descriptor of the warpgroup's first element, an i64 to which others are added.

        Args:
            index: the index of that element in the tile.
            pass_context: the state of the run.
        """
        # Read again: the loops around it may be new ones.
        stage = tile_of(self.tile.op, pass_context).index[: -len(index)]
        at = address(self.tile.buffer, self.tile.layout, [*stage, *index])
        inside = arith.AndIOp(at, i32_constant(_WINDOW)).result
        units = arith.ShRUIOp(inside, i32_constant(4)).result
        return arith.ExtUIOp(ir.IntegerType.get_signless(64), units).result


class _WgmmaLowering:
    """The lowering of one contraction to wgmma.

    Raises:
        LegoError: `wgmma` cannot read an operand's layout.
    """

    def __init__(self, step: TransformStep, found: Contraction, group: Any) -> None:
        self._pass_context = step.pass_context
        self._found = found
        self._group = group
        rows, columns, _ = found.sizes
        warps = found.warps.size
        assert isinstance(warps, int)
        self._groups = warps // WARPGROUP_WARPS
        self._blocks = rows // self._groups // WGMMA_ROWS
        try:
            self._a = _operand_descriptors(found.a, found.a_k_dim, WGMMA_ROWS, self._groups)
            self._b = _operand_descriptors(found.b, found.b_k_dim, columns, 1)
        except LegoError as e:
            raise step.error(e.message, found.op, e.hint) from None
        for descriptors in (self._a, self._b):
            require_alignment(descriptors.tile, descriptors.by_block[0][0].alignment)

    @property
    def registers(self) -> AccumulatorRegisters:
        """The accumulator's registers."""
        return AccumulatorRegisters(
            self._blocks, self._found.sizes[1], self._found.instruction.accumulator
        )

    def __call__(self, accumulator: FragmentValue) -> FragmentValue:
        """Make the instructions at the contraction, and return the new accumulator."""
        op = self._found.op
        own = apply(
            OrderBy(Row(self._groups, self._found.sizes[0] // self._groups)), [self._group, 0]
        )
        first = [own, 0] if self._found.a_k_dim == 1 else [0, own]
        a_base = self._a.base(first, self._pass_context)
        b_base = self._b.base([0, 0], self._pass_context)
        registers = self.registers
        (columns,) = self._b.by_block
        nvvm.wgmma_fence()
        words = [_add_descriptor(b_base, b.bits) for b in columns]
        begins = None
        if isinstance(accumulator.pairs, RestartedPairs):
            begins, accumulator = accumulator.pairs.condition, accumulator.pairs.before
        befores = (
            [None] * self._blocks if is_zero(op.operands[2]) else registers.flatten(accumulator)
        )
        blocks = []
        for before, rows in zip(befores, self._a.by_block, strict=True):
            majors = [(a.major, b.major) for a, b in zip(rows, columns, strict=True)]
            chain = WgmmaChain(self._found.instruction, registers, self._found.sizes[1], majors)
            descriptors = [
                (_add_descriptor(a_base, a.bits), b) for a, b in zip(rows, words, strict=True)
            ]
            blocks.append(chain(before, descriptors, begins))
        nvvm.wgmma_commit()
        return registers.unflatten(iter(blocks))


def _operand_descriptors(tile: Tile, inner: int, extent: int, groups: int) -> _OperandDescriptors:
    """Return the descriptors of the first warpgroup; those of the others differ by a constant.

    Args:
        tile: an operand in shared memory.
        inner: its K dimension.
        extent: an instruction's size along the other dimension.
        groups: the warpgroups that divide it.
    """
    size = element_bytes(tile.element)
    return _OperandDescriptors(tile, operand_descriptors(tile.piece(), size, inner, extent, groups))


def _add_descriptor(base: Any, word: int) -> Any:
    """Add a descriptor relative to an operand's base to the base."""
    i64 = ir.IntegerType.get_signless(64)
    signed = word - (1 << 64) if word >> 63 else word
    return arith.AddIOp(base, arith.ConstantOp(i64, signed).result).result


def _index(n: int) -> Any:
    return arith.ConstantOp(ir.IndexType.get(), n).result
