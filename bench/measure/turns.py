"""Several processes that use a GPU: they prepare at the same time, and measure one at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Turns:
    """Turns of the processes that have the same file.

    Args:
        file: is made where it is missing, and stays empty.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    @contextmanager
    def turn(self, alone: bool) -> Iterator[None]:
        """Wait for a turn, and have it.

        Args:
            alone: while no other process has a turn; otherwise while none is alone.
        """
        with self._file.open("a") as lock:  # closed, it is given back
            fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
