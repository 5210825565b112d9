"""How a permutation is divided among CTAs and threads: a config of tiles, or one of copies."""

from __future__ import annotations

from dataclasses import dataclass

from lego_mlir.algebra import GenP, Layout, OrderBy, swizzle
from lego_mlir.hardware.limits import BANK_BYTES, BANK_LINE_BYTES


@dataclass(frozen=True, slots=True)
class TileConfig:
    """The tile that a CTA transposes through shared memory, and the accesses of its threads.

    A thread loads small blocks of `thread_rows`×`load_width` elements and transposes each in its
    registers.

    Attributes:
        down: elements of the tile along the output's contiguous dimension.
        across: elements of the tile along the input's contiguous dimension.
        thread_rows: elements of a thread's block along `down`.
        load_width: elements of a thread's block along `across`, which one load takes.
        store_width: elements along `down` that one store takes.
        thread_blocks: blocks that a thread transposes.
        skew_span: if rows of the output are not aligned, the tiles of each row start at the next
            lower multiple of so many elements in memory; else 1.
    """

    down: int
    across: int
    thread_rows: int
    load_width: int
    store_width: int
    thread_blocks: int
    skew_span: int = 1

    @property
    def threads(self) -> int:
        """The threads of a CTA."""
        return self.down * self.across // self._elements

    @property
    def stores(self) -> int:
        """The stores of a thread."""
        return self._elements // self.store_width

    @property
    def _elements(self) -> int:
        """The elements of a thread."""
        return self.thread_rows * self.load_width * self.thread_blocks

    def shared_layout(self, element_bytes: int) -> Layout:
        """Return the layout of the tile in shared memory, across×down, without bank conflicts.

        Neighbouring threads write into every `load_width`-th row: at the same position, or, if a
        row has fewer threads than there are banks, at neighbouring positions.

        Args:
            element_bytes: bytes of an element.
        """
        chunk = max(self.thread_rows, self.store_width, BANK_BYTES // element_bytes)
        rows = max(1, BANK_LINE_BYTES // (self.down * element_bytes))  # of the tile, in a line
        lanes = BANK_LINE_BYTES // (chunk * element_bytes)
        neighbours = max(1, lanes * self.load_width // self.across)
        permutation = swizzle(
            chunk * neighbours, max(1, self.load_width // rows), lanes // neighbours
        )
        return OrderBy(GenP([self.across // rows, self.down * rows], permutation))


@dataclass(frozen=True, slots=True)
class CopyConfig:
    """What a CTA copies if input and output are contiguous along the same dimension.

    Attributes:
        rows: rows of threads, along the next dimension.
        columns: columns of threads, along the contiguous dimension.
        width: elements that a thread copies in one access.
    """

    rows: int
    columns: int
    width: int
