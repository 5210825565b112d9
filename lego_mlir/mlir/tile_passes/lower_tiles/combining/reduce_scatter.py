"""Reductions over a cluster: each CTA gets from the others what they hold of its slice.

    %own = "lego.reduce_scatter"(%x, %rank) {kind = "add", dim = 1 : i64}

becomes, in a cluster of two CTAs, with a thread's quads of four registers,

    %room = "lego.alloc"() {layout = Row(rooms, 1, quads, threads, 4)}      in every CTA
    scf.if %cta != 0 { "lego.send_parts"(%room, ..., %x0, %x1, %full, 0) }  slice 0 goes to CTA 0
    scf.if %cta != 1 { "lego.send_parts"(%room, ..., %x2, %x3, %full, 1) }
    %kept:2 = scf.index_switch %cta { %x0, %x1 | %x2, %x3 }
    mbarrier.try_wait.parity %full, %parity                                 until all bytes came
    %y:2 = "lego.load_parts"(%room, ...)
    %own = arith.addf %kept, %y

Threads of one number hold the same elements of the tile in every CTA, so elements go from thread to
thread, and no side needs their position in the tile. The quads of adjacent threads are adjacent in
memory, and so in different banks. The rooms of a CTA are those of the ranks behind its own, in
turn; it adds them in that order, so a sum does not depend on which CTA comes first.

The barriers, and how iterations alternate between two rooms, are those of `exchanges`.

Source: PTX ISA, "st.async", "mapa" and "mbarrier".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.slices import part_registers
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build, views
from lego_mlir.mlir.tile_passes.lower_tiles.combining.combine import Combine
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.clusters import received, sendable
from lego_mlir.mlir.tile_passes.lower_tiles.exchanges import Exchange
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    part_types,
    part_width,
    repeated,
    same_registers,
    without_copies,
)
from lego_mlir.mlir.tile_passes.lower_tiles.memory import allocate, where
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_QUAD = 2
"""Which dimension of the memory counts a thread's quads."""

_ELEMENT = 4
"""Which one counts the elements of a quad."""


def reduce_scatter(
    tile: Fragment, layout: DistributedLayout, combine: Combine, threads: Threads
) -> Fragment:
    """Build the slice of the combination of all tiles that the CTA gets.

    Args:
        tile: what the CTA holds.
        layout: of a slice; each thread holds a part of every slice.
        combine: what combines two elements.
        threads: those of the kernel.
    """
    own = without_copies(layout)
    slices = _slices(tile, layout, own)
    rooms = threads.kernel.cluster - 1
    sent = [sendable(piece) for piece in slices]
    quads, width = len(sent[0].parts), part_width(own)
    count = threads.warps * WARP_THREADS
    size = rooms * count * own.registers * bytes_of(sent[0].element)
    exchange = threads.exchanges.begin(size, rooms * count)
    memory = OrderBy(Row(exchange.slots, rooms, quads, count, width))
    buffer = allocate(layout_attribute(memory), sent[0].element)
    _send(sent, buffer, memory, exchange, threads)
    found = views.picked_by(threads.cta, slices)
    exchange.wait([buffer])
    for room in range(rooms):
        parts = tiles.load_parts(
            part_types(own, sent[0].element),
            buffer,
            _index(exchange, build.index(room), threads),
            layout_attribute(memory),
            _registers(memory),
        )
        other = received(Fragment(own, tuple(parts)), found.element)
        both = zip(found.parts, other.parts, strict=True)
        found = Fragment(own, tuple(combine.apply((a,), (b,))[0] for a, b in both))
    return repeated(found, layout)


def _slices(tile: Fragment, layout: DistributedLayout, own: DistributedLayout) -> list[Fragment]:
    """Return the slices that a thread holds parts of, each element once."""
    registers = part_registers(tile.layout, layout)
    assert registers is not None  # the verifier has seen to it
    once = range(own.registers) if own == layout else same_registers(own, layout)
    return [tile.picked(own, [each[k] for k in once]) for each in registers]


def _send(
    slices: Sequence[Fragment], buffer: Any, memory: Layout, exchange: Exchange, threads: Threads
) -> None:
    """Build the stores of each slice into the room that this CTA has in the one that gets it."""
    ctas = len(slices)
    for cta, piece in enumerate(slices):
        with where(build.compare("ne", threads.cta, build.index(cta))):
            ahead = build.binary("addi", threads.cta, build.index(ctas - 1 - cta))
            room = build.binary("remui", ahead, build.index(ctas))
            # It would be ctas - 1 where the CTA itself gets the slice.
            room.owner.attributes[dialect.BOUNDS] = dialect.bounds_attribute([ctas - 1])
            tiles.send_parts(
                piece.parts,
                buffer,
                _index(exchange, room, threads),
                layout_attribute(memory),
                _registers(memory),
                exchange.barrier,
                build.constant(build.i32(), cta),
                exchange.slot,
                arrives=exchange.slot is not None,
            )


def _index(exchange: Exchange, room: Any, threads: Threads) -> list[Any]:
    """Return the index in memory of the thread's first element of a room."""
    zero = build.index(0)
    return [zero if exchange.slot is None else exchange.slot, room, zero, threads.thread, zero]


def _registers(memory: Layout) -> list[tuple[int, int, int]]:
    """Return the register factors in memory: quads, and the elements of each."""
    return [(dim, int(memory.dims[dim]), 1) for dim in (_QUAD, _ELEMENT)]
