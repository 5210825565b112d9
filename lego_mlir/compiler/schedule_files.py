"""The files of schedules, by name or path; they are read without MLIR."""

from __future__ import annotations

import os
from pathlib import Path

from lego_mlir import data
from lego_mlir.diagnostics import LegoError, Location, with_guess
from lego_mlir.mlir.context import Source

PLACED = "__transform_placed"
"""The named sequence that runs on kernels on tiles when all tiles have layouts."""


_RENAMED = {"hmma": "cp_async", "wgmma": "persistent"}
"""Schedules of earlier versions, and those that do what they did."""


def names() -> list[str]:
    """Return the schedules that ship with the package."""
    return sorted(path.stem for path in data.transforms().glob("*.mlir"))


def is_shipped(schedule: str) -> bool:
    """Return whether a schedule of this name ships with the package."""
    path = data.transforms() / f"{schedule}.mlir"
    return path.parent == data.transforms() and path.is_file()


def takes_tiles(schedule: str) -> bool:
    """Return whether a schedule has steps for kernels on tiles: the sequence `@PLACED`.

    Raises:
        LegoError: there is no such schedule.
    """
    return f"@{PLACED}" in read(schedule).text


def read(schedule: str) -> Source:
    """Read the script of a schedule, given by its name or a file's path.

    Raises:
        LegoError: there is none.
    """
    if not isinstance(schedule, str | os.PathLike):
        raise LegoError(
            f"{schedule!r} is no schedule", hint=f"give a file, or one of: {', '.join(names())}"
        )
    if schedule in _RENAMED:
        raise LegoError(
            f"there is no schedule '{schedule}'", hint=f"it is '{_RENAMED[str(schedule)]}' now"
        )
    shipped = data.transforms() / f"{schedule}.mlir"
    path = shipped if is_shipped(str(schedule)) else Path(schedule)
    try:
        return Source(str(path), path.read_text())
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is no text"
        raise LegoError(
            f"there is no schedule '{schedule}': {reason}",
            location=Location(str(path)),
            hint=with_guess(schedule, names(), f"give a file, or one of: {', '.join(names())}"),
        ) from None
