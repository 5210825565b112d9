"""Reports that a launch takes long: how long it will take, and how far it has come.

On a terminal a launch of more than two seconds has a bar (`lego_mlir.progress`). Elsewhere a launch
of minutes says so within seconds, and again as time passes. The estimate is the time of
the waves of CTAs that have run, for all waves. While the first one runs it is a lower bound.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from lego_mlir.progress import Bar

_LONG = 30.0
"""Seconds from which on a launch reports."""

_SOON = 2.0
"""Seconds until the first report, if by then the launch is known to be long."""

_log = logging.getLogger("lego_mlir.sim")


class Progress:
    """The progress of one launch.

    Args:
        kernel: the kernel's name.
        waves: the number of waves of the launch.
        report: gets the text of each report; by default it is a warning of Python's logging, which
            goes to stderr unless the program says otherwise.

    Attributes:
        done: the number of waves that have ended.
    """

    def __init__(
        self, kernel: str, waves: int, report: Callable[[str], None] = _log.warning
    ) -> None:
        self.kernel = kernel
        self.waves = waves
        self.report = report
        self.done = 0
        self.start = monotonic()
        self._next = _SOON
        self._bar = Bar(f"simulation of {kernel}", waves)

    def check(self) -> None:
        """Report if it is time to; called often."""
        elapsed = monotonic() - self.start
        if elapsed >= _SOON:
            self._bar.done = self.done
            self._bar.check()
        if elapsed < self._next or self._bar.is_shown:
            return
        estimate = elapsed * self.waves / max(self.done, 1)
        if estimate < _LONG:
            self._next = elapsed + _SOON
            return
        self._next = 2 * elapsed + _SOON
        bound = "about" if self.done else "more than"
        self.report(
            f"the simulation of {self.kernel} takes {bound} {_duration(estimate)}: {self.state()} "
            f"after {_duration(elapsed)}; Ctrl-C ends it"
        )

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C say, in one line, which launch it ended and how far that had come.

        When the block ends the launch has ended, and its bar vanishes.
        """
        try:
            with self._bar:
                yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"the simulation of {self.kernel} ended early: {self.state()}"
            ) from None

    def state(self) -> str:
        """Return how far the launch has come, as text."""
        return f"{self.done} of {self.waves} waves of CTAs are done"


def _duration(seconds: float) -> str:
    """Return a time as text: `9 s`, `4 min`, `2.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
