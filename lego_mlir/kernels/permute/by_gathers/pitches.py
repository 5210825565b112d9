"""The pitches of a tile in shared memory, and the lanes, that meet least in banks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import BANK_BYTES, BANK_LINE_BYTES, SECTOR_BYTES, WARP_THREADS
from lego_mlir.kernels.permute.by_gathers.config import GatherConfig, sides_of, writing_of
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.problem import PermuteProblem

_LANES = (2, 4, 8)
"""Rows that neighbouring threads may be on."""

_BETTER, _FEW = 0.95, 1.1
"""Lanes are on several rows where that saves wavefronts, and pitches looked for until these."""

_SAMPLE = 64
"""Threads whose wavefronts are counted."""


@dataclass(frozen=True, slots=True)
class Pitches:
    """The pitches that a tile may have: those that equal the input's strides modulo a word.

    Attributes:
        strides: of the input, in units.
        tile: units of each mode.
        outer: the modes outside of a row, slowest first.
        word: units of a word.
        row: units from a row's begin to the next one's, at least.
    """

    strides: tuple[int, ...]
    tile: tuple[int, ...]
    outer: tuple[int, ...]
    word: int
    row: int

    @staticmethod
    def of(source: RowSide) -> Pitches:
        """Return the pitches of the tile in the input."""
        side, word = source.side, source.word
        # What words have beyond a row must not be in the next one.
        row = source.units if source.is_aligned else max(source.units, source.touched * word)
        return Pitches(side.strides, side.tile, side.outer, word, row)

    def apart(self, more: Mapping[int, int] | None = None) -> tuple[int, ...]:
        """Return the pitch of each mode, in units.

        Args:
            more: what is added to the pitch of modes, multiples of a word.
        """
        found, end = list(self.strides), self.row
        for k in reversed(self.outer):
            found[k] = end + (self.strides[k] - end) % self.word + (more or {}).get(k, 0)
            end = found[k] * self.tile[k]
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Takes:
    """The units that warps take from shared memory.

    Attributes:
        index: along each mode of the tile, an array of the number of a request and of the lane.
        active: where lanes take one.
        unit_bytes: bytes of a unit.
    """

    index: Any
    active: Any
    unit_bytes: int

    @staticmethod
    def of(config: GatherConfig, target: RowSide, writing: Traversal) -> Takes:
        """Return what the first warps take for their first words: all steps have these conflicts.

        Args:
            config: the tile.
            target: the tile in the output.
            writing: how its threads go over the rows.
        """
        import numpy as np

        threads = np.arange(min(writing.count, _SAMPLE))
        rows, column = writing.place(threads)
        strides = [target.side.strides[k] for k in target.side.outer]
        starts = sum((i * stride for i, stride in zip(rows, strides, strict=True)), start=0)
        ahead = 0 if target.is_aligned else -starts % target.period
        along = ahead + column * config.word + np.arange(config.word)[:, None]
        inside = along < target.units
        run = OrderBy(Row(*(target.side.tile[k] for k in target.side.run)))
        place = run.inv(np.where(inside, along, 0))
        shape = len(config.tile), *along.shape[:-1], -(-len(threads) // WARP_THREADS) * WARP_THREADS
        index, active = np.zeros(shape, np.int64), np.zeros(shape[1:], bool)
        active[:, : len(threads)] = inside
        for k, i in zip((*target.side.outer, *target.side.run), (*rows, *place), strict=True):
            index[k, :, : len(threads)] = i
        return Takes(
            index.reshape(len(config.tile), -1, WARP_THREADS),
            active.reshape(-1, WARP_THREADS),
            config.unit_bytes,
        )

    def wavefronts(self, pitches: Sequence[Sequence[int]]) -> list[float]:
        """Return the wavefronts of a warp's worth of units, for several pitches of all modes."""
        import numpy as np

        from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts

        places = np.tensordot(np.array(pitches, np.int64), self.index, 1) * self.unit_bytes
        active = np.broadcast_to(self.active, places.shape)
        executed = wavefronts(places, self.unit_bytes, active).executed
        each = executed.sum(1) / max(1, int(self.active.sum())) * WARP_THREADS
        return [float(n) for n in each]


def without_conflicts(problem: PermuteProblem, config: GatherConfig) -> tuple[GatherConfig, float]:
    """Return a config with the pitches and lanes that meet least in banks, and its wavefronts.

    Args:
        problem: the permutation of units.
        config: the tile, at any pitches.
    """
    source, target = sides_of(problem, config)
    writing = writing_of(target, config)
    assert writing is not None
    pitches = Pitches.of(source)
    # What a warp stores of a row is a sector at least.
    most = WARP_THREADS * config.word * config.unit_bytes // SECTOR_BYTES
    together = [n for n in _LANES if n <= most]
    lanes = [
        (k, n) for n in together for k, count in enumerate(writing.threads[:-1]) if count % n == 0
    ]
    step = config.load * max(1, BANK_BYTES // config.load_bytes)
    period = max(1, BANK_LINE_BYTES // (step * config.unit_bytes))
    best, least = config, float("inf")
    for each in [(0, 1), *lanes]:
        more: dict[int, int] = {}
        takes = Takes.of(config, target, replace(writing, lanes=each))
        # A tile that is one row has no other pitches.
        for k in (*reversed(pitches.outer),) or (0,):
            choices = [pitches.apart({**more, k: n * step}) for n in range(period)]
            counts = takes.wavefronts(choices)
            n = counts.index(min(counts))
            more[k] = n * step
            if counts[n] < least * _BETTER:
                best = replace(config, lanes=each, pitches=choices[n])
                least = counts[n]
            if least <= _FEW:
                return best, least
    return best, least
