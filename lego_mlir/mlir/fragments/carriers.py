"""How a loop carries what a thread holds of a tile: as values of which types.

Numbers of 32 bits each by themselves, pairs of 16 bits as the one register that they fill.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lego_mlir.mlir.fragments.thread_fragment import PAIR, Held, as_vector


class Carrier(Protocol):
    """A way to carry one tile."""

    @property
    def count(self) -> int:
        """How many values that are."""

    def flat(self, held: Held) -> list[Any]:
        """The values, in order."""

    def held(self, values: Iterator[Any]) -> Held:
        """What the next `count` values are."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two numbers for each part.

    Attributes:
        places: of the parts, by row and column.
    """

    places: Sequence[tuple[int, int]]

    @property
    def count(self) -> int:
        return PAIR * len(self.places)

    def flat(self, held: Held) -> list[Any]:
        return [x for pair in held.values(self.places) for x in pair]

    def held(self, values: Iterator[Any]) -> Held:
        return Held({place: (next(values), next(values)) for place in self.places}, (True, True))


@dataclass(frozen=True, slots=True)
class PackedPairs:
    """A vector of two for each part.

    Attributes:
        places: of the parts, by row and column.
    """

    places: Sequence[tuple[int, int]]

    @property
    def count(self) -> int:
        return len(self.places)

    def flat(self, held: Held) -> list[Any]:
        return [as_vector(held.at(*place)) for place in self.places]

    def held(self, values: Iterator[Any]) -> Held:
        return Held({place: next(values) for place in self.places}, (True, True))
