"""How a loop carries what a thread holds of a tile: as values of which types.

Numbers of 32 bits each by themselves, pairs of 16 bits as the one register that they fill.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lego_mlir.mlir.fragments.thread_fragment import PAIR, FragmentValue, as_vector


class LoopCarrier(Protocol):
    """A way to carry one tile."""

    @property
    def count(self) -> int:
        """How many values that are."""

    def flatten(self, fragment: FragmentValue) -> list[Any]:
        """The values, in order."""

    def unflatten(self, values: Iterator[Any]) -> FragmentValue:
        """What the next `count` values are."""


@dataclass(frozen=True, slots=True)
class PairCarrier:
    """Two numbers for each part.

    Attributes:
        positions: of the parts, by row and column.
    """

    positions: Sequence[tuple[int, int]]

    @property
    def count(self) -> int:
        return PAIR * len(self.positions)

    def flatten(self, fragment: FragmentValue) -> list[Any]:
        return [x for pair in fragment.values(self.positions) for x in pair]

    def unflatten(self, values: Iterator[Any]) -> FragmentValue:
        return FragmentValue(
            {position: (next(values), next(values)) for position in self.positions}, (True, True)
        )


@dataclass(frozen=True, slots=True)
class PackedPairCarrier:
    """A vector of two for each part.

    Attributes:
        positions: of the parts, by row and column.
    """

    positions: Sequence[tuple[int, int]]

    @property
    def count(self) -> int:
        return len(self.positions)

    def flatten(self, fragment: FragmentValue) -> list[Any]:
        return [as_vector(fragment.at(*position)) for position in self.positions]

    def unflatten(self, values: Iterator[Any]) -> FragmentValue:
        return FragmentValue({position: next(values) for position in self.positions}, (True, True))
