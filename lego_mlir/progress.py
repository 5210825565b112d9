"""Progress bars on a terminal, of work that takes longer than two seconds.

A bar is drawn by rich (the extra `draw`) on stderr, if that is a terminal, and vanishes at the end.
Captured output never has one. Of work inside of other work only the outer one has a bar.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from time import monotonic
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

DELAY = 2.0
"""Seconds until a bar appears."""

_shown: list[Bar] = []
"""The bar that is drawn, if one is: a terminal has room for one."""


class Bar:
    """The progress of one piece of work.

    Args:
        what: the work, in a few words.
        total: the number of its steps.

    Attributes:
        done: the number of steps that are done.
    """

    def __init__(self, what: str, total: int) -> None:
        self.what = what
        self.total = total
        self.done = 0
        self._start = monotonic()
        self._drawn: Any = None
        self._next = 0.0
        self._can_be_shown = True

    @property
    def is_shown(self) -> bool:
        """Whether the bar is on the terminal."""
        return self._drawn is not None

    def advance(self, steps: int = 1) -> None:
        """Count steps as done."""
        self.done += steps
        self.check()

    def check(self) -> None:
        """Draw the bar if it is time to; called often."""
        now = monotonic() - self._start
        if now < DELAY or now < self._next or not self._can_be_shown:
            return
        self._next = now + 0.1
        if self._drawn is None:
            self._drawn = None if _shown else _drawn(self)
            if self._drawn is None:
                self._can_be_shown = bool(_shown) and _is_terminal()
                return
            _shown.append(self)
        self._drawn.update(self._drawn.task_ids[0], completed=self.done)

    def close(self) -> None:
        """Remove the bar from the terminal."""
        if self._drawn is not None:
            self._drawn.stop()
            self._drawn = None
            _shown.remove(self)
        self._can_be_shown = False

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def track(what: str, steps: Iterable[T], total: int | None = None) -> Iterator[T]:
    """Yield the steps of some work, with a bar if they take long.

    Args:
        what: the work, in a few words.
        steps: what it goes through.
        total: the number of steps, if `steps` has no length.
    """
    if total is None:
        total = len(steps) if isinstance(steps, Sized) else 0
    with Bar(what, total) as bar:
        for step in steps:
            bar.check()
            yield step
            bar.advance()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _drawn(bar: Bar) -> Any:
    """Return rich's progress display of a bar; None without rich or a terminal."""
    if not _is_terminal():
        return None
    try:
        from rich import progress
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        return None
    console = Console(stderr=True)
    if not console.is_terminal:  # as TERM=dumb
        return None
    shown = progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
        # On the same terminal, lines are printed above the bar; elsewhere they are left alone.
        redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
    )
    shown.add_task(Text(bar.what).markup, total=bar.total)
    shown.start()
    return shown
