"""Accesses of shared memory by `ldmatrix` and `stmatrix`: eight lanes at a time name rows.

    %w:4 = "lego.load_matrices"(%room, %i, %j) {layout = #M, matrices = 4 : i64, registers = ...}

%i and %j are the index of the row whose address the thread gives, which in general is not that
of an element it holds. The words are what it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.conversions.matrices import Matrices
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    of_elements,
    register_factors,
)
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_WORD_BYTES = 4


def load_by_matrices(
    layout: DistributedLayout,
    element: Any,
    buffer: Any,
    attribute: Any,
    matrices: Matrices,
    index: Sequence[Any],
) -> Fragment:
    """Build the loads of a tile from shared memory.

    Args:
        layout: of the tile.
        element: the type of its elements.
        buffer: the memory.
        attribute: of the memory's layout.
        matrices: what each instruction moves.
        index: of the row whose address the thread gives, a value a dimension of the memory.
    """
    per_word = _WORD_BYTES // bytes_of(element)
    words = [word for registers in matrices.registers for word in words_of(registers, per_word)]
    outer = len(index) - layout.rank
    found = tiles.load_matrices(
        [build.vector_type(per_word, element)] * len(words),
        buffer,
        index,
        attribute,
        [(outer + dim, n, stride) for dim, n, stride in register_factors(matrices.rows)],
        len(matrices.registers[0]) // per_word,
        transposed=matrices.is_transposed,
    )
    elements: dict[int, Any] = {}
    for word, registers in zip(found, words, strict=True):
        elements.update(zip(registers, build.to_elements(word), strict=True))
    return of_elements(layout, [elements[r] for r in range(layout.registers)])


def store_by_matrices(
    tile: Fragment,
    buffer: Any,
    attribute: Any,
    matrices: Matrices,
    threads: Threads,
    outer: Sequence[Any] = (),
) -> None:
    """Build the stores of a tile to shared memory; arguments as `load_by_matrices`."""
    per_word = _WORD_BYTES // bytes_of(tile.element)
    elements = tile.elements()
    tiles.store_matrices(
        [
            build.from_elements([elements[r] for r in word])
            for registers in matrices.registers
            for word in words_of(registers, per_word)
        ],
        buffer,
        [*outer, *threads.coordinates(matrices.rows)],
        attribute,
        [(len(outer) + dim, n, stride) for dim, n, stride in register_factors(matrices.rows)],
        len(matrices.registers[0]) // per_word,
        transposed=matrices.is_transposed,
    )


def words_of(registers: tuple[int, ...], per_word: int) -> list[tuple[int, ...]]:
    """Return the registers of each word."""
    return [registers[k : k + per_word] for k in range(0, len(registers), per_word)]
