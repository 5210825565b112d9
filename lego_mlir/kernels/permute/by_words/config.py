"""What a permutation by words is divided by: a tile, its threads, its pitches in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.tiled_mode import TiledMode
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import Side


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
    """

    tile: tuple[int, ...]
    threads: int
    unit: int
    word: int
    pitches: tuple[int, ...]
    lanes: tuple[int, int] = (0, 1)
    sector: int = 1


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
    source, target = (
        RowSide(Side.of(problem, config.tile, is_source=s), config.word, 1 if s else config.sector)
        for s in (True, False)
    )
    while source.traversal(source.touched, config.threads, in_digits=True) is None:
        if (shorter := source.shorter) is None:
            break
        source = shorter
    return source, target


def reading_of(source: RowSide, config: WordConfig) -> Traversal | None:
    """Return how the threads of a config go over the input's rows; `None` if they cannot."""
    found = source.traversal(source.touched, config.threads, in_digits=True)
    return found and replace(found, lanes=config.lanes)


def shared_units(target: Side, pitches: Sequence[int], word: int) -> int:
    """Return the units of shared memory of a tile at these pitches, shifted by any phase."""
    last = sum((target.tile[k] - 1) * pitches[k] for k in target.order)
    return -(-(last + word) // word) * word
