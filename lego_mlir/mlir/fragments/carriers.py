"""The loop-carried values of a thread's fragment of a tile.

Elements of 32 bits are a value each; pairs of 16 bits are one value, since they fill one register.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lego_mlir.mlir.fragments.thread_fragment import PAIR, FragmentValue, as_vector


class LoopCarrier(Protocol):
    """A mapping between a thread's fragment and the values that a loop carries."""

    @property
    def count(self) -> int:
        """The number of values."""

    def flatten(self, fragment: FragmentValue) -> list[Any]:
        """Return the values of a fragment, in order."""

    def unflatten(self, values: Iterator[Any]) -> FragmentValue:
        """Return the fragment of the next `count` values."""


@dataclass(frozen=True, slots=True)
class PairCarrier:
    """Carries each pair as two values.

    Attributes:
        positions: the row and column of each pair in the fragment.
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
    """Carries each pair as a vector of two.

    Attributes:
        positions: the row and column of each pair in the fragment.
    """

    positions: Sequence[tuple[int, int]]

    @property
    def count(self) -> int:
        return len(self.positions)

    def flatten(self, fragment: FragmentValue) -> list[Any]:
        return [as_vector(fragment.at(*position)) for position in self.positions]

    def unflatten(self, values: Iterator[Any]) -> FragmentValue:
        return FragmentValue({position: next(values) for position in self.positions}, (True, True))
