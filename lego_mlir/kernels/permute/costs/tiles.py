"""The tiles of a permutation, of any kind of kernel: how many there are, and what they move.

All is of one tile, or of many at once: a tile is an array whose last axis has its units along each
mode, and what is returned has the other axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import gcd
from typing import Any

from lego_mlir.hardware.limits import (
    BANK_BYTES,
    HALF_LINE_BYTES,
    SECTOR_BYTES,
    WARP_THREADS,
)
from lego_mlir.kernels.permute.costs.accesses import Accesses, KindPrices, prices_of
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import NEAR_BYTES, SHORT_BYTES, Side, steps_apart


@dataclass(frozen=True, slots=True)
class TileRows:
    """The rows of tiles in one of the two memories: what lies side by side, as the run of `Side`.

    Attributes:
        first: the slowest mode of a row, by its number in the problem.
        size: of that mode.
        part: units of the tile along it.
        inner: units of a step of it.
        apart: the largest number that divides the distances of rows in memory, in units; 0 if there
            is one row only.
    """

    first: Any
    size: Any
    part: Any
    inner: Any
    apart: Any

    @staticmethod
    def of(problem: PermuteProblem, tiles: Any, *, is_source: bool) -> TileRows:
        """Return the rows of the input or of the output.

        Args:
            problem: the permutation of units.
            tiles: units of each mode.
            is_source: which of them.
        """
        import numpy as np

        side = Side.of(problem, (0,) * len(problem.modes), is_source=is_source)
        order, sizes = np.array(side.order), np.array(side.sizes)
        strides = [side.strides[k] for k in side.order]
        ordered = tiles[..., order]
        is_cut = ordered != sizes[order]
        # The innermost mode that a tile has a part of; the slowest one if it has all of each.
        last = len(order) - 1 - np.argmax(is_cut[..., ::-1], axis=-1)
        place = np.where(is_cut.any(axis=-1), last, 0)
        part = np.take_along_axis(ordered, place[..., None], axis=-1)[..., 0]
        first = order[place]
        return TileRows(
            first, sizes[first], part, np.array(strides)[place], np.array(_divisors(strides))[place]
        )

    @property
    def units(self) -> Any:
        """The units of a row."""
        return self.part * self.inner

    @property
    def cut(self) -> Any:
        """How many times more rows there are in tiles, of which some are cut, than whole ones."""
        return -(-self.size // self.part) * self.part / self.size

    def touched(self, unit_bytes: int, among: int) -> Any:
        """Return the bytes of the sectors or lines that rows touch, for each byte of them.

        Args:
            unit_bytes: bytes of a unit.
            among: bytes of a sector, or of a line.
        """
        import numpy as np

        row = self.units * unit_bytes
        step = np.gcd(among, np.gcd(row, self.apart * unit_bytes))
        # A row begins at any multiple of `step`: it touches sectors in proportion.
        return (row + among - step) / row


def _boxes(problem: PermuteProblem, tiles: Any, joined: int) -> Any:
    """Return the tiles of all modes that have as much of the last `joined` ones as tiles do."""
    import numpy as np

    if joined == 1:
        return tiles
    found, left = [], tiles[..., -1]
    for mode in reversed(problem.modes[len(problem.modes) - joined :]):
        found.append(np.clip(left, 1, mode.size))
        left = left // mode.size
    return np.concatenate([tiles[..., :-1], np.stack(found[::-1], axis=-1)], axis=-1)


def _divisors(strides: Sequence[int]) -> list[int]:
    """Return what divides all strides before each one."""
    found, divisor = [], 0
    for stride in strides:
        found.append(divisor)
        divisor = gcd(divisor, stride)
    return found


@dataclass(frozen=True, eq=False)
class Tiles:
    """The tiles of a permutation.

    Attributes:
        problem: the permutation of units.
        tile: units of each mode, along the last axis of an array.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        sizes: of the modes.
        advance: units along each mode from a tile's begin to the next one's.
        counts: tiles along each mode.
        source: the tile's rows in the input.
        target: the tile's rows in the output.
        sector: as of `WordConfig`; 0 for tiles that are cut at the ends of modes. Others overlap.
        far: if modes are joined, the tiles of a row of the output from one to where its input's run
            goes on; 0 if they are not.
    """

    problem: PermuteProblem
    tile: Any
    unit: int
    unit_bytes: int
    sizes: Any
    advance: Any
    counts: Any
    source: TileRows
    target: TileRows
    sector: int
    far: Any = 0.0

    @staticmethod
    def of(
        problem: PermuteProblem,
        tile: Any,
        unit: int,
        unit_bytes: int,
        sector: int = 0,
        joined: int = 1,
    ) -> Tiles:
        """Return tiles; arguments as the attributes, and `joined` as of `SquareConfig`."""
        import numpy as np

        advance = tile = np.asarray(tile)
        source = TileRows.of(problem, _boxes(problem, tile, joined), is_source=True)
        modes, problem = problem.modes, problem.joined(joined)
        last = len(problem.modes) - 1
        strides = np.array([mode.target for mode in modes])
        along = strides[source.first] * source.part
        source = replace(source, first=np.minimum(source.first, last))
        target = TileRows.of(problem, tile, is_source=False)
        sizes = np.array([mode.size for mode in problem.modes])
        if sector > 1:
            is_first = np.arange(len(sizes)) == target.first[..., None]
            steps = np.vectorize(steps_apart)(target.part, target.inner, target.apart, sector)
            advance = np.where(is_first, steps[..., None], tile)
        counts = 1 + -(-np.maximum(0, sizes - tile) // advance)
        far = along / advance[..., -1] if joined > 1 else 0.0
        how = (sizes, advance, counts, source, target)
        return Tiles(problem, tile, unit, unit_bytes, *how, sector, far)

    @property
    def units(self) -> Any:
        """The units of a tile."""
        return self.tile.prod(axis=-1)

    @cached_property
    def special(self) -> Any:
        """The part of the tiles that are not the same for all threads."""
        if not self.sector:
            return 0.0
        counts = self.counts
        is_cut = (self.sizes - self.tile) % self.advance > 0
        usual = ((counts - is_cut) / counts).prod(axis=-1)
        if self.sector > 1:  # nor are those with ends of rows
            along = self.along(counts, self.target.first)
            usual = usual * (along > 2) * (along - 2) / along
        return 1 - usual

    @property
    def stores_whole_sectors(self) -> bool:
        """Whether what a tile stores of a row begins and ends where sectors of memory do."""
        return self.sector * self.unit_bytes >= SECTOR_BYTES

    @cached_property
    def covered(self) -> Any:
        """The elements of all tiles, for each one of the tensor."""
        return self.counts.prod(axis=-1) * self.units / self.sizes.prod()

    @cached_property
    def apart(self) -> Any:
        """The tiles from one to where its input's run goes on, in the order of CTAs."""
        import numpy as np

        first, last, counts = self.source.first, self.target.first, self.counts
        between = (np.where(np.arange(len(self.sizes)) > first[..., None], counts, 1)).prod(axis=-1)
        is_near = between * self.units * self.unit_bytes <= NEAR_BYTES
        along = self.along(counts, last)
        read = self.source.units
        is_short = (read * self.unit_bytes <= SHORT_BYTES) & (read <= self.target.units)
        is_next = (first < last) & (self.along(counts, first) < along) & is_short
        found = np.where(is_next, 1, np.where(is_near | (first >= last), between, along))
        return np.where((first == last) & (self.far > 1), self.far, found)

    @staticmethod
    def along(counts: Any, mode: Any) -> Any:
        """Return the tiles along one mode."""
        import numpy as np

        return np.take_along_axis(counts, mode[..., None], axis=-1)[..., 0]

    def _stored_by(self, request: float) -> Any:
        """Return the bytes of the sectors that stores of so many bytes touch, for each byte."""
        import numpy as np

        units = self.target.units
        if self.sector > 1:  # what overlaps is not stored
            units = self.along(self.advance, self.target.first) * self.target.inner
        row = units * self.unit_bytes
        step = np.gcd(SECTOR_BYTES, np.gcd(row, self.target.apart * self.unit_bytes))
        step = np.maximum(step, self.sector * self.unit_bytes)
        each = np.minimum(row, request)
        return (each + SECTOR_BYTES - step) / each

    @property
    def _shared(self) -> Any:
        """The bytes of the sectors that two tiles store parts of, for each byte of them."""
        import numpy as np

        if self.stores_whole_sectors:  # only ends of rows are stored by two
            row = self.target.inner * self.target.size
            return (self.sector - np.gcd(self.sector, row)) / row
        rows = self._rows(is_source=False)
        return (rows.touched(self.unit_bytes, SECTOR_BYTES) - 1) * rows.cut

    def _rows(self, *, is_source: bool) -> TileRows:
        """Return the tiles' rows in the input or the output, without what is beyond modes."""
        import numpy as np

        if self.sector:
            return self.source if is_source else self.target
        return TileRows.of(self.problem, np.minimum(self.tile, self.sizes), is_source=is_source)

    def _touched(self, *, is_source: bool, among: int) -> Any:
        """Return the bytes of sectors or lines that tiles touch, for each byte of them.

        A row that is cut moves its own bytes only, but touches as many beyond them as any other.
        """
        rows = self._rows(is_source=is_source)
        return 1 + (rows.touched(self.unit_bytes, among) - 1) * rows.cut

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        """The bytes of the half lines and of the sectors that loads touch, for each byte."""
        units = (HALF_LINE_BYTES, SECTOR_BYTES)
        read, loaded = (self._touched(is_source=True, among=among) for among in units)
        # What tiles have in common is loaded again.
        return (read * self.covered, loaded * self.covered) if self.sector else (read, loaded)

    @cached_property
    def warps(self) -> Any:
        """The warps' worths of elements in a tile, on average of whole tiles and cut ones."""
        return self.sizes.prod() * self.unit / WARP_THREADS / self.counts.prod(axis=-1)

    def accesses(
        self,
        requests: float,
        wavefronts: float,
        *,
        steps: Any,
        ctas: Any,
        threads: Any,
        prices: KindPrices,
        apart: Any = None,
        stored: float = 0.0,
        request: float = WARP_THREADS * BANK_BYTES,
    ) -> Accesses:
        """Return the accesses of the permutation.

        Args:
            requests: of a tile.
            wavefronts: of a tile.
            steps: of a thread.
            ctas: that a multiprocessor works on at a time.
            threads: of a CTA.
            prices: of this kind of kernel.
            apart: tiles from one to where its input's run goes on, if it is not `self.apart`.
            stored: bytes of the sectors that stores of warps touch, for each byte that is stored;
                0 if they are not counted.
            request: bytes that one of them stores at most, if they are not.
        """
        import numpy as np

        read, loaded = self._loaded
        written: Any = stored
        if self.stores_whole_sectors:
            written = np.maximum(1.0, stored) + self._shared
        elif not stored:
            written = self._stored_by(request)
            if self.sector <= 1:
                touched = self._touched(is_source=False, among=SECTOR_BYTES)
                written = np.maximum(touched, written)
        if self.sector == 1:
            # Tiles overlap where others are cut.
            written = written * self.covered
        tiles, warps = self.counts.prod(axis=-1), self.warps
        return Accesses(
            self.unit_bytes / self.unit,
            read,
            loaded,
            written,
            requests / warps,
            wavefronts / warps,
            steps,
            ctas,
            tiles,
            warps,
            self.source.units * self.unit_bytes,
            self.target.units * self.unit_bytes,
            (self.apart if apart is None else apart) * self.units * self.unit_bytes,
            prices_of(prices.by_bytes, self.unit_bytes),
            prices.small,
            threads,
            2.0 * float(self.sizes.prod()) * self.unit_bytes,
            self.special,
            shared=self._shared,
        )


@lru_cache(maxsize=1 << 6)
def tiles_of(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    unit: int,
    unit_bytes: int,
    sector: int,
    joined: int = 1,
) -> Tiles:
    """Return what `Tiles.of` does, of one tile: the same for all configs that have it."""
    return Tiles.of(problem, tile, unit, unit_bytes, sector, joined)
