"""The tiles of a permutation, of any kind of kernel: how many there are, and what they move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, prod

from lego_mlir.hardware.limits import BANK_BYTES, SECTOR_BYTES, WARP_THREADS
from lego_mlir.kernels.permute.accesses import Accesses, Prices, prices_of
from lego_mlir.kernels.permute.by_words.tiled_mode import TiledMode
from lego_mlir.kernels.permute.problem import PermuteProblem, count_tiles
from lego_mlir.kernels.permute.run_heuristic import touched
from lego_mlir.kernels.permute.runs import Side, raster_order


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of a permutation.

    Attributes:
        problem: the permutation of units.
        tile: units of each mode.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        modes: how they cover each mode, if they may overlap: those of kernels by words.
        sector: as of `WordConfig`.
    """

    problem: PermuteProblem
    tile: tuple[int, ...]
    unit: int
    unit_bytes: int
    modes: tuple[TiledMode, ...] = ()
    sector: int = 1

    @property
    def counts(self) -> list[int]:
        """The tiles along each mode."""
        if self.modes:
            return [mode.count for mode in self.modes]
        pairs = zip(self.problem.modes, self.tile, strict=True)
        return [count_tiles(m.size, t) for m, t in pairs]

    @property
    def warps(self) -> float:
        """The warps' worths of elements in a tile, on average of whole tiles and cut ones."""
        units = prod(m.size for m in self.problem.modes)
        return units * self.unit / WARP_THREADS / prod(self.counts)

    @property
    def covered(self) -> float:
        """The elements of all tiles, for each one of the tensor."""
        units = prod(m.size for m in self.problem.modes)
        return prod(self.counts) * prod(self.tile) / units

    @property
    def apart(self) -> int:
        """The tiles from one to where its input's run goes on, in the output's order."""
        first = Side.of(self.problem, self.tile, is_source=True).run[0]
        order = raster_order(self.problem, self.tile, self.counts, self.unit_bytes)
        return prod(self.counts[k] for k in order[order.index(first) + 1 :])

    def _stored_by(self, request: float) -> float:
        """Return the bytes of the sectors that stores of so many bytes touch, for each byte."""
        side = Side.of(self.problem, self.tile, is_source=False)
        row = side.extents[-1] * self.unit_bytes
        starts = (n * self.unit_bytes for n in (side.extents[-1], *side.strides_of_rows))
        each = min(row, request)
        return (each + SECTOR_BYTES - gcd(SECTOR_BYTES, *starts)) / each

    def accesses(
        self,
        requests: float,
        wavefronts: float,
        *,
        steps: float,
        ctas: int,
        apart: int,
        prices: Mapping[int, Prices],
        stored: float = 0.0,
        request: float = WARP_THREADS * BANK_BYTES,
    ) -> Accesses:
        """Return the accesses of the permutation.

        Args:
            requests: of a tile.
            wavefronts: of a tile.
            steps: of a thread.
            ctas: that a multiprocessor works on at a time.
            apart: tiles from one to where its input's run goes on.
            prices: of this kind of kernel, by the bytes of a unit.
            stored: bytes of the sectors that stores of warps touch, for each byte that is stored;
                0 if they are not counted.
            request: bytes that one of them stores at most, if they are not.
        """
        read, written = touched(self.problem, self.tile, self.unit_bytes)
        loaded, _ = touched(self.problem, self.tile, self.unit_bytes, (SECTOR_BYTES, SECTOR_BYTES))
        stored = stored or max(written, self._stored_by(request))
        counts, special = self.counts, 0.0
        if self.modes:
            # Tiles overlap where others are cut, and what they have in common is moved again.
            read, loaded, stored = (n * self.covered for n in (read, loaded, stored))
            special = 1 - prod(m.regular / m.count for m in self.modes)
        source, target = (Side.of(self.problem, self.tile, is_source=s) for s in (True, False))
        if self.sector > 1:  # only ends of rows are stored by two
            first = target.run[0]
            row = target.extents[-1] // self.tile[first] * self.problem.modes[first].size
            stored = 1 + (self.sector - gcd(self.sector, row)) / row
            special = 1 - (1 - special) * max(0, counts[first] - 2) / counts[first]
        return Accesses(
            self.unit_bytes / self.unit,
            read,
            loaded,
            stored,
            requests / self.warps,
            wavefronts / self.warps,
            steps,
            ctas,
            prod(counts),
            self.warps,
            source.extents[-1] * self.unit_bytes,
            target.extents[-1] * self.unit_bytes,
            apart * prod(self.tile) * self.unit_bytes,
            prices_of(prices, self.unit_bytes),
            special,
        )
