"""A thread's position: its warp's row and column, its lane, and that lane in a fragment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread's position, as index values.

    Attributes:
        warp: the row and column of its warp.
        lane: its lane id.
        group, thread: the lane's position in a fragment.
        warpgroup: its warpgroup and the warp's number in that, if the four warps of a warpgroup
            divide the rows of each fragment instead of all rows; else `None`.
    """

    warp: tuple[Any, Any]
    lane: Any
    group: Any
    thread: Any
    warpgroup: tuple[Any, Any] | None = None
