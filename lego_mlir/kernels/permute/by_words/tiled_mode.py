"""How tiles cover a mode: one after another, or overlapping where sectors are not to be shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row


@dataclass(frozen=True, slots=True)
class TiledMode:
    """The tiles along a mode, which begin at multiples of `advance`; the last one ends with it.

    Attributes:
        size: units of the mode.
        tile: units of a tile, at most `size`.
        advance: units from a tile's begin to the next one's.
    """

    size: int
    tile: int
    advance: int

    @property
    def regular(self) -> int:
        """The tiles that begin at a multiple of `advance`."""
        return (self.size - self.tile) // self.advance + 1

    @property
    def is_cut(self) -> bool:
        """Whether the last tile begins earlier than that."""
        return (self.size - self.tile) % self.advance > 0

    @property
    def count(self) -> int:
        """The tiles."""
        return self.regular + self.is_cut

    def begin(self, number: Any) -> Any:
        """Return where a tile begins, by its number: a value of a kernel."""
        if not self.is_cut:
            return number * self.advance
        is_last, _ = OrderBy(Row(2, self.regular)).inv(number)
        return lg.select(is_last, [number * self.advance, self.size - self.tile])

    def skipped(self, number: Any) -> Any:
        """Return how many units from its begin on the tile before it has, beyond any overlap."""
        return number * self.advance - self.begin(number) if self.is_cut else 0
