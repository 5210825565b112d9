"""The protocol of a ring: which tiles it holds, and who may go on.

A role numbers the tiles of a ring 0, 1, 2, ... Tile n is filled once every consumer has released
tile n - stages, and read once it is committed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.dialect import pipeline_operations as pipelines


@dataclass
class Ring:
    """The state of a ring. What a tile is, and what names a role, is the caller's choice.

    Attributes:
        stages: how many tiles it holds.
        consumers: the roles that release tiles.
        copied: the tile that each acquired number is to be, once it is copied.
        complete: the tiles that are committed.
        counts: how often each role has executed each of the ring's operations.
        waited: what each role has got, by number.
    """

    stages: int
    consumers: frozenset[Any]
    copied: dict[int, Any] = field(default_factory=dict)
    complete: dict[int, Any] = field(default_factory=dict)
    counts: dict[tuple[Any, str], int] = field(default_factory=dict)
    waited: dict[tuple[Any, int], Any] = field(default_factory=dict)

    def is_empty_for(self, number: int) -> bool:
        """Return whether the stage of a tile is empty: every consumer has released its last one."""
        released = (self.counts.get((c, pipelines.RELEASE), 0) for c in self.consumers)
        return all(n > number - self.stages for n in released)

    def is_complete(self, number: int) -> bool:
        """Return whether a tile is committed."""
        return number in self.complete

    def count(self, role: Any, name: str, number: int) -> None:
        """Count an operation of a role.

        Raises:
            LegoError: its number is not the next one.
        """
        expected = self.counts.get((role, name), 0)
        if number != expected:
            raise LegoError(
                f"'{name}' of tile {number}, where tile {expected} is next",
                hint="the tiles of a ring have the numbers 0, 1, 2, ... in each role",
            )
        self.counts[role, name] = expected + 1

    def acquire(self, number: int) -> None:
        """Begin to fill the stage of a tile, which is empty."""
        self.complete.pop(number - self.stages, None)
        self.copied[number] = None

    def check_acquired(self, name: str, number: int) -> None:
        """Check that an operation fills a stage that is acquired.

        Raises:
            LegoError: it is not.
        """
        if number not in self.copied:
            raise LegoError(
                f"'{name}' to tile {number}, which is not acquired",
                hint=f"it stands between {pipelines.ACQUIRE} and {pipelines.COMMIT}",
            )

    def commit(self, number: int) -> None:
        """Complete a tile.

        Raises:
            LegoError: nothing has filled it.
        """
        tile = self.copied.pop(number, None)
        if tile is None:
            raise LegoError(
                f"'{pipelines.COMMIT}' of tile {number}, to which nothing is copied",
                hint=f"copy with {pipelines.COPY_ASYNC}, or put with {pipelines.PUT}, first",
            )
        self.complete[number] = tile

    def release(self, role: Any, number: int) -> Any:
        """Return what a role has got of a tile, which it reads no more.

        Raises:
            LegoError: the role has not waited for it.
        """
        data = self.waited.pop((role, number), None)
        if data is None:
            raise LegoError(
                f"'{pipelines.RELEASE}' of tile {number}, for which the role has not waited",
                hint=f"a tile is released after its {pipelines.WAIT}",
            )
        return data
