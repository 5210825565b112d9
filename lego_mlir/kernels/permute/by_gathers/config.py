"""What a permutation by gathers is divided by: a tile, its threads, its pitches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import Side


@dataclass(frozen=True, slots=True)
class GatherConfig:
    """A tile of whole runs whose words of the output are gathered.

    Attributes:
        tile: units of each mode of the problem in units, in its order.
        threads: of a CTA.
        unit: elements that stay together.
        unit_bytes: their bytes.
        load: units of an access to the input, which is copied to shared memory as it is.
        word: units of an access to the output.
        pitches: units from neighbour to neighbour in shared memory, of each mode.
        lanes: rows of the output that neighbouring threads are on, as `Traversal.lanes`.
        sector: units of a sector, if what a tile stores of a row begins and ends where sectors do;
            1 if it begins where the tile does.
    """

    tile: tuple[int, ...]
    threads: int
    unit: int
    unit_bytes: int
    load: int
    word: int
    pitches: tuple[int, ...]
    lanes: tuple[int, int] = (0, 1)
    sector: int = 1

    @property
    def load_bytes(self) -> int:
        """The bytes of an access to the input."""
        return self.load * self.unit_bytes


def sides_of(problem: PermuteProblem, config: GatherConfig) -> tuple[RowSide, RowSide]:
    """Return the tile in input and output, whose rows have constant distances for threads."""
    source = RowSide(Side.of(problem, config.tile, is_source=True), config.load)
    target = RowSide(Side.of(problem, config.tile, is_source=False), config.word, config.sector)
    while config.sector == 1 and storing(target, config.threads) is None:
        if (shorter := target.shorter) is None:
            break
        target = shorter
    return source, target


def loading(source: RowSide, most: int) -> Traversal | None:
    """Return how up to `most` threads go over the words that the input's rows touch."""
    return source.traversal(source.touched, most)


def storing(target: RowSide, most: int) -> Traversal | None:
    """Return how up to `most` threads go over the words that lie in the output's rows.

    They keep the phase in a sector, if whole sectors are stored.
    """
    return target.traversal(target.whole, most, in_digits=True, period=target.period)


def storing_ends(target: RowSide, most: int) -> Traversal | None:
    """Return how up to `most` threads go over the units of rows that are in no whole word."""
    return target.traversal(2 * (target.word - 1), most, period=target.period)


def writing_of(target: RowSide, config: GatherConfig) -> Traversal | None:
    """Return how the threads of a config go over the output's rows; `None` if they cannot."""
    found = storing(target, config.threads)
    return found and replace(found, lanes=config.lanes)


def shared_units(source: Side, pitches: Sequence[int], load: int) -> int:
    """Return the units of shared memory of a tile at these pitches, shifted by any phase.

    Each row is followed by what its last word has beyond it.
    """
    last = sum((source.tile[k] - 1) * pitches[k] for k in source.order)
    return -(-(last + 2 * load) // load) * load
