"""What a permutation by words is divided by: a tile, its threads, its pitches in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from lego_mlir.hardware.limits import BANK_BYTES
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.tiled_mode import TiledMode
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.costs.accesses import resident_ctas
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import Side

_RESIDENT_THREADS = 512
"""Threads for which a multiprocessor has registers at least, and of two CTAs. For as many as it
can hold, which is what the assembler goes for if it is not told, it would spill."""


@dataclass(frozen=True, slots=True)
class WordConfig:
    """A tile of whole runs that is moved by words.

    Attributes:
        tile: units of each mode of the problem in units, in its order.
        threads: of a CTA.
        unit: elements that stay together.
        word: units of an access to either memory.
        pitches: units from neighbour to neighbour in shared memory, of each mode.
        lanes: rows of the input that neighbouring threads are on, as `Traversal.lanes`.
        sector: units of a sector, if what a tile stores of a row begins and ends where sectors do;
            1 if it begins where the tile does.
        group: units of a sector, if neighbouring threads store the words of whole sectors; 1 if
            they count words from where a row begins.
    """

    tile: tuple[int, ...]
    threads: int
    unit: int
    word: int
    pitches: tuple[int, ...]
    lanes: tuple[int, int] = (0, 1)
    sector: int = 1
    group: int = 1


def tiled_modes(problem: PermuteProblem, tile: Sequence[int], sector: int) -> list[TiledMode]:
    """Return how tiles cover each mode of the problem.

    Args:
        problem: the permutation of units.
        tile: units of each mode.
        sector: as of a config.
    """
    target = RowSide(Side.of(problem, tile, is_source=False), 1, sector)
    modes = [TiledMode(m.size, t, t) for m, t in zip(problem.modes, tile, strict=True)]
    first = target.side.run[0]
    modes[first] = replace(modes[first], advance=target.advance)
    return modes


def sides_of(problem: PermuteProblem, config: WordConfig) -> tuple[RowSide, RowSide]:
    """Return the tile in input and output; the input's rows have constant distances for threads."""
    source = RowSide(Side.of(problem, config.tile, is_source=True), config.word)
    target = RowSide(
        Side.of(problem, config.tile, is_source=False), config.word, config.sector, config.group
    )
    if config.sector > 1 and source.side.run[0] == target.side.run[0]:
        source = replace(source, apart=target.advance)
    while source.traversal(source.touched, config.threads, in_digits=True) is None:
        if (shorter := source.shorter) is None:
            break
        source = shorter
    return source, target


def reading_of(source: RowSide, config: WordConfig) -> Traversal | None:
    """Return how the threads of a config go over the input's rows; `None` if they cannot."""
    found = source.traversal(source.touched, config.threads, in_digits=True)
    return found and replace(found, lanes=config.lanes)


def is_grouped(target: RowSide, threads: int) -> bool:
    """Return whether threads can store a tile's rows by sectors, and rows begin inside of them."""
    if target.group == 1 or target.sector > 1 or target.side.is_aligned(target.group):
        return False
    most = [n for n in (target.grouped, target.ends) if n or not target.is_aligned]
    return all(n and target.traversal(n, threads) is not None for n in most)


def shared_units(target: Side, pitches: Sequence[int], word: int) -> int:
    """Return the units of shared memory of a tile at these pitches, shifted by any phase."""
    last = sum((target.tile[k] - 1) * pitches[k] for k in target.order)
    return -(-(last + word) // word) * word


def resident(problem: PermuteProblem, config: WordConfig, unit_bytes: int) -> int:
    """Return for how many CTAs a multiprocessor has room: what the kernel asks registers for.

    Registers are fitted to what the assembler takes for the loads of a thread, with some more.

    Args:
        problem: the permutation of units.
        config: its tile.
        unit_bytes: bytes of a unit.
    """
    source, target = sides_of(problem, config)
    reading = reading_of(source, config)
    assert reading is not None
    steps, word, digits = prod(reading.counts), config.word, len(source.side.run) - 1
    registers = 22.5 + 1.07 * steps * word * unit_bytes / BANK_BYTES + 0.11 * digits * word
    registers += 0.6 * len(problem.modes) + (0.0 if target.is_aligned else 4.2)
    if not source.is_aligned:
        registers += (0.9 + 0.17 * digits) * word + 0.16 * steps
        registers += min(16.0, 2.0 * word * (reading.counts[-1] - 1))
        registers += 8.0 * max(0, reading.counts[-1] - 8)
    least = max(2, _RESIDENT_THREADS // config.threads)
    shared = shared_units(target.side, config.pitches, word) * unit_bytes
    return int(resident_ctas(config.threads, registers, shared, least))
