"""Copies of tiles in shared memory to another layout there, matrices by matrices.

    %w:4 = "lego.load_matrices"(%from, %stage, %i, %j) {layout = #S, matrices = 4 : i64, transposed}
    %x0 = llvm.call_intrinsic "llvm.nvvm.prmt"(%w0, %w1, %bytes)
    "lego.store_matrices"(%to, %stage, %k, %l, %x0, %x1, %x2, %x3) {layout = #T, matrices = 4 : i64}

What a load brings is stored before the next load, so that a copy takes few registers, whatever the
size of the tile.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.conversions.matrices import ROW_BYTES, Matrices
from lego_mlir.analysis.distributed.conversions.shared_copies import SharedCopy, plan_shared_copy
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.matrices import words_of
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import coordinates, same_registers
from lego_mlir.mlir.tile_passes.lower_tiles.shared_tiles import SharedTile
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_WORD_BYTES = 4
_SAME = 0x3210
"""The selector of prmt that takes a word as it is."""


def copy_shared(
    target: SharedTile, memory: Layout, source: SharedTile, from_: Layout, threads: Threads
) -> None:
    """Build the copy of a tile, and a fence behind it.

    Args:
        target: where it goes.
        memory: its layout there, without the dimensions that are not the tile's.
        source: the tile.
        from_: its layout, as `memory`.
        threads: those that copy.
    """
    size = bytes_of(source.element)
    plan = plan_shared_copy(from_, memory, size, threads.warps)
    assert plan is not None, "the verifier has seen to it"
    per_word = _WORD_BYTES // size
    room = plan.memory(target.layout)
    held: dict[int, tuple[Any, int]] = {}
    loads, stores = _order(plan)
    for load, behind in zip(loads, stores, strict=True):
        words = words_of(plan.load.registers[load], per_word)
        found = tiles.load_matrices(
            [build.i32()] * len(words),
            source.buffer,
            _row(source, plan.load, load, threads),
            layout_attribute(source.layout),
            _elements(source, plan.load, size),
            len(words),
            transposed=plan.load.is_transposed,
        )
        for word, registers in zip(found, words, strict=True):
            held.update({r: (word, place) for place, r in enumerate(registers)})
        for store in behind:
            taken = words_of(plan.store.registers[store], per_word)
            tiles.store_matrices(
                [_word(word, plan, held, size, threads) for word in taken],
                target.buffer,
                _row(target, plan.store, store, threads),
                layout_attribute(room),
                _elements(target, plan.store, size),
                len(taken),
                transposed=False,
            )
    nvvm.fence_async_shared()  # wgmma and TMA access memory by another proxy than threads do


def _word(
    registers: tuple[int, ...],
    plan: SharedCopy,
    held: dict[int, tuple[Any, int]],
    element_bytes: int,
    threads: Threads,
) -> Any:
    """Build the word that a lane stores, of the bytes of one or two words that it has loaded.

    Args:
        registers: of the word, as elements are stored.
        plan: of the copy.
        held: for each register, as elements are loaded, the word and the element's place there.
        element_bytes: of an element.
        threads: those that copy.
    """
    loaded = _loaded(plan.stored, plan.loaded)
    own = [held[loaded[r]] for r in registers]
    words = list(dict.fromkeys(word for word, _ in own))
    selector = _selector(own, words, element_bytes)
    if plan.exchange is None:
        if selector == _SAME:
            return words[0]
        return _permuted(words, build.constant(build.i32(), selector))
    other = [held[loaded[r ^ plan.exchange.register]] for r in registers]
    there = _selector(other, words, element_bytes)
    is_there = threads.is_digit(plan.exchange.lanes, 1)
    choice = build.select(is_there, *(build.constant(build.i32(), n) for n in (there, selector)))
    return _permuted(words, choice)


def _selector(elements: list[tuple[Any, int]], words: list[Any], element_bytes: int) -> int:
    """Return the selector of prmt: for each byte, the lowest first, its number in both words."""
    found = 0
    for k, (word, place) in enumerate(elements):
        first = words.index(word) * _WORD_BYTES + place * element_bytes
        for byte in range(element_bytes):
            found |= first + byte << 4 * (k * element_bytes + byte)
    return found


def _permuted(words: list[Any], selector: Any) -> Any:
    """Build bytes of one or two words (PTX ISA 9.7.9.7, "prmt")."""
    operands = [words[0], words[-1], selector]
    return ir.Operation.create(
        "llvm.call_intrinsic",
        results=[build.i32()],
        operands=operands,
        attributes={
            "intrin": ir.StringAttr.get("llvm.nvvm.prmt"),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    ).result


def _order(plan: SharedCopy) -> tuple[range, list[list[int]]]:
    """Return the loads in their order, and behind each the stores of what is there then."""
    loads = range(len(plan.load.registers))
    loaded_by = {r: load for load in loads for r in plan.load.registers[load]}
    stores: list[list[int]] = [[] for _ in loads]
    for store in range(len(plan.store.registers)):
        stores[max(loaded_by[r] for r in _sources(plan, store))].append(store)
    return loads, stores


def _sources(plan: SharedCopy, store: int) -> tuple[int, ...]:
    """Return the registers that a store takes, as they have been loaded."""
    loaded = _loaded(plan.stored, plan.loaded)
    return tuple(loaded[r] for r in plan.store.registers[store])


@lru_cache(maxsize=1 << 6)
def _loaded(stored: DistributedLayout, loaded: DistributedLayout) -> tuple[int, ...]:
    """Return for each register in which an element is stored the one in which it was loaded."""
    return same_registers(stored, loaded)


def _row(tile: SharedTile, matrices: Matrices, number: int, threads: Threads) -> list[Any]:
    """Build the index of the row of an instruction whose address the thread gives."""
    start = matrices.starts[number]
    distances = (each[start] for each in coordinates(matrices.rows))
    first = threads.coordinates(matrices.rows)
    beyond = (
        build.binary("addi", x, build.index(n)) if n else x
        for x, n in zip(first, distances, strict=True)
    )
    return [*tile.index, *beyond]


def _elements(
    tile: SharedTile, matrices: Matrices, element_bytes: int
) -> list[tuple[int, int, int]]:
    """Return the register factors of the elements of a row: dimension, size and stride."""
    outer = len(tile.index)
    at = coordinates(matrices.rows)
    found = []
    for bit in reversed(range((ROW_BYTES // element_bytes).bit_length() - 1)):
        ((dim, stride),) = ((d, each[1 << bit]) for d, each in enumerate(at) if each[1 << bit])
        found.append((outer + dim, 2, stride))
    return found
