"""Gathers between the CTAs of a cluster: each sends its part into the shared memory of all.

    %room = "lego.alloc"() {layout = #M}                    in every CTA, for what all send
    scf.if %is_first { mbarrier.arrive.expect_tx %full, %bytes }
    scf.if %is_sender {                                     copy r of an element goes to CTA r
      "lego.send_parts"(%room, %i, %x, %full, %peer) {layout = #M, ...}
    }
    mbarrier.try_wait.parity %full, %parity                 until all bytes are there
    %y = "lego.load_parts"(%room, %j) {layout = #M, ...}

The barrier counts bytes, so that no thread waits for more than what it reads. It begins before the
kernel's body (`exchanges.py`). In a loop two barriers and two rooms alternate.

Source: PTX ISA, "st.async" and "mbarrier".
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.algebra.multibuffer import multibuffered
from lego_mlir.analysis.distributed import DistributedLayout, Place
from lego_mlir.analysis.distributed.conversions.clusters import OfCluster
from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shuffles import from_words, to_words
from lego_mlir.mlir.tile_passes.lower_tiles.exchanges import Exchange
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    of_elements,
    once,
    part_types,
    register_factors,
    repeated,
    without_copies,
)
from lego_mlir.mlir.tile_passes.lower_tiles.memory import allocate, where
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_SENT_BYTES = (4, 8)
"""Bytes of an element that st.async stores."""


def gather(held: Sequence[Fragment], pieces: OfCluster, threads: Threads) -> list[Fragment]:
    """Build the tiles in which each CTA has what its group had parts of, by one round trip.

    Args:
        held: tiles of one layout, that of `pieces.source`.
        pieces: what CTAs gather.
        threads: those of the kernel.

    Returns:
        The tiles in the layout `pieces.target`.
    """
    sent = [once(sendable(tile)) for tile in held]
    size = prod(pieces.target.shape) * sum(bytes_of(tile.element) for tile in sent)
    senders = prod(sent[0].layout.shape) // sent[0].layout.registers
    exchange = threads.exchanges.begin(size, senders)
    attribute = layout_attribute(multibuffered(_memory(pieces), exchange.slots))
    buffers = [allocate(attribute, tile.element) for tile in sent]
    _send(sent, buffers, attribute, exchange, pieces, threads)
    exchange.wait(buffers)
    own = without_copies(pieces.target)
    found = []
    for tile, given, buffer in zip(sent, held, buffers, strict=True):
        parts = tiles.load_parts(
            part_types(own, tile.element),
            buffer,
            [_room(exchange), *threads.coordinates(own)],
            attribute,
            _in_room(own),
        )
        whole = repeated(Fragment(own, tuple(parts)), pieces.target)
        found.append(received(whole, given.element))
    return found


def sendable(tile: Fragment) -> Fragment:
    """Build the tile with a word for each element that st.async does not store."""
    if bytes_of(tile.element) in _SENT_BYTES:
        return tile
    return of_elements(tile.layout, [to_words(x)[0] for x in tile.elements()])


def received(tile: Fragment, element: Any) -> Fragment:
    """Build the tile of elements as they were before `sendable`."""
    if bytes_of(element) in _SENT_BYTES:
        return tile
    return of_elements(tile.layout, [from_words([w], element) for w in tile.elements()])


def _memory(pieces: OfCluster) -> Layout:
    """Return the memory in which what a thread loads of several CTAs follows one another."""
    shape = pieces.target.shape
    gathered = {f.dim for f in pieces.source.places[Place.CTA]}
    order = sorted(range(len(shape)), key=lambda dim: dim in gathered)
    return OrderBy(RegP(list(shape), order))


def _send(
    sent: Sequence[Fragment],
    buffers: Sequence[Any],
    memory: Any,
    exchange: Exchange,
    pieces: OfCluster,
    threads: Threads,
) -> None:
    """Build the stores into all CTAs of the group: of an element's copies each serves others."""
    source = sent[0].layout
    digits, numbers = _digits(pieces)
    own = threads.cta_digits(digits)
    moved = [x for x, is_moved in zip(own, pieces.moved, strict=True) if is_moved]
    rank = moved[0] if len(moved) == 1 else dialect.apply(layout_attribute(numbers), moved)
    index, copy = threads.coordinates(source, rank), threads.copy(source, rank)
    room = _room(exchange)
    group, copies = source.ctas, source.replicas
    for first in range(0, group, copies):
        left = group - first
        is_there = build.compare("ult", copy, build.index(left)) if left < copies else None
        with where(is_there):
            member = build.binary("addi", copy, build.index(first)) if first else copy
            of_member = iter(dialect.inv(layout_attribute(numbers), len(moved), [member]))
            at = [
                next(of_member) if is_moved else x
                for x, is_moved in zip(own, pieces.moved, strict=True)
            ]
            number = dialect.apply(layout_attribute(digits), at)
            peer = build.make("arith.index_cast", build.i32(), number)
            for tile, buffer in zip(sent, buffers, strict=True):
                tiles.send_parts(
                    tile.parts,
                    buffer,
                    [room, *index],
                    memory,
                    _in_room(tile.layout),
                    exchange.barrier,
                    peer,
                    exchange.slot,
                    arrives=exchange.slot is not None and buffer == buffers[-1],
                )


def _room(exchange: Exchange) -> Any:
    """Return the number of the room that an exchange's bytes are in, an index."""
    return build.index(0) if exchange.slot is None else exchange.slot


def _in_room(layout: DistributedLayout) -> list[tuple[int, int, int]]:
    """Return the register factors of a tile in memory whose first dimension is the room."""
    return [(1 + dim, n, stride) for dim, n, stride in register_factors(layout)]


def _digits(pieces: OfCluster) -> tuple[Layout, Layout]:
    """Return the layouts of the CTA's number in the cluster, and of that in its group."""
    moved = [n for n, is_moved in zip(pieces.digits, pieces.moved, strict=True) if is_moved]
    return OrderBy(Row(*pieces.digits)), OrderBy(Row(*moved))
